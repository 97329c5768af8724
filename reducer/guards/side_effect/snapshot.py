"""Side-effect snapshot: the guard's state as JSON values, and back."""

from collections.abc import Mapping

from guardwave.reducer.guards.modes import mode_on
from guardwave.reducer.guards.side_effect.ladder import Action, ApprovalScope, Ladder, Scope
from guardwave.reducer.guards.side_effect.repeat import FirstUse, Layer, Repeat
from guardwave.reducer.guards.side_effect.state import (
    GUARD,
    SCHEMA,
    CallRecord,
    CallStatus,
    Mark,
    OpenQuestion,
    RequestLog,
    SideEffectDuplicate,
    Track,
    is_identity,
)
from guardwave.reducer.guards.snapshot import (
    Document,
    JsonValue,
    Snapshot,
    seal,
    start_settings,
    unseal,
)
from guardwave.reducer.vocabulary import GuardPhase, Mode, Route


def dump(state: SideEffectDuplicate) -> Document:
    """Return the state as plain JSON values."""
    ladder = state.ladder
    return seal(
        GUARD,
        SCHEMA,
        {
            "mode": state.mode.value,
            "route": state.route.value,
            "action": ladder.action.value,
            "scope": ladder.scope.value,
            "ttl_ms": ladder.ttl_ms,
            "approvals": ladder.approvals.value,
            "is_enforcement_disabled": state.is_enforcement_disabled,
            "tracks": {key: _track(track) for key, track in state.tracks.items()},
            "requests": {name: _log(log) for name, log in state.requests.items()},
        },
    )


def restore(document: object) -> SideEffectDuplicate:
    """Return the state of a snapshot.

    A snapshot of a newer schema gives a new state of the same mode and route with the default
    ladder. Its enforcement is disabled until the next prompt, because it knows neither the earlier
    runs nor the host's settings.

    Raises:
        ValueError: the snapshot is damaged; it names the field.
    """
    snapshot = unseal(document, guard=GUARD, schema=SCHEMA)
    if snapshot is None:
        assert isinstance(document, Mapping)
        start = start_settings(document)
        fresh = SideEffectDuplicate.start(start.mode, route=start.route)
        return fresh._replace(is_enforcement_disabled=True)
    ladder = Ladder(
        action=snapshot.word("action", Action),
        scope=snapshot.word("scope", Scope),
        ttl_ms=_optional_whole(snapshot, "ttl_ms"),
        approvals=snapshot.word("approvals", ApprovalScope),
    )
    tracks = snapshot.mapping("tracks")
    requests = snapshot.mapping("requests")
    route = snapshot.word("route", Route)
    return SideEffectDuplicate(
        mode=mode_on(route, snapshot.word("mode", Mode)),
        route=route,
        ladder=ladder,
        tracks={key: _read_track(_part(snapshot, "tracks", item)) for key, item in tracks.items()},
        requests={
            name: _read_log(_part(snapshot, "requests", item)) for name, item in requests.items()
        },
        is_enforcement_disabled=snapshot.flag("is_enforcement_disabled"),
    )


def _track(track: Track) -> Document:
    return {
        "first": None if track.first is None else _use(track.first),
        "running": [_use(use) for use in track.running],
        "is_nudged": track.is_nudged,
    }


def _read_track(snapshot: Snapshot) -> Track:
    first = _nullable(snapshot, "first")
    return Track(
        None if first is None else _read_use(snapshot, "first", first),
        tuple(_read_use(snapshot, "running", item) for item in snapshot.items("running")),
        snapshot.flag("is_nudged"),
    )


def _log(log: RequestLog) -> Document:
    return {
        "calls": {call_id: _record(record) for call_id, record in log.calls.items()},
        "refused": {key: _use(use) for key, use in log.refused.items()},
        "marks": {
            key: {"ordinal": mark.ordinal, "phase": mark.phase.value, "repeats": mark.repeats}
            for key, mark in log.marks.items()
        },
        "next_ordinal": log.next_ordinal,
    }


def _read_log(snapshot: Snapshot) -> RequestLog:
    refused = {
        key: _read_use(snapshot, "refused", item)
        for key, item in snapshot.mapping("refused").items()
    }
    marks = {key: _part(snapshot, "marks", item) for key, item in snapshot.mapping("marks").items()}
    return RequestLog(
        calls={
            call_id: _read_record(_part(snapshot, "calls", item))
            for call_id, item in snapshot.mapping("calls").items()
        },
        refused=refused,
        marks={
            key: Mark(mark.whole("ordinal"), mark.word("phase", GuardPhase), mark.whole("repeats"))
            for key, mark in marks.items()
        },
        next_ordinal=snapshot.whole("next_ordinal"),
    )


def _record(record: CallRecord) -> Document:
    return {
        "status": record.status.value,
        "home": record.home,
        "xid": record.xid,
        "channel": record.channel,
        "is_approved": record.is_approved,
        "question": None if record.question is None else _question(record.question),
    }


def _question(question: OpenQuestion) -> Document:
    repeat = question.repeat
    return {
        "home": question.home,
        "about": question.about,
        "call_id": repeat.call_id,
        "tool": repeat.tool,
        "digest": repeat.digest,
        "first": _use(repeat.first),
        "layer": repeat.layer.value,
    }


def _read_record(snapshot: Snapshot) -> CallRecord:
    status = snapshot.word("status", CallStatus)
    question = _nullable(snapshot, "question")
    if (question is not None) is not (status is CallStatus.SUSPENDED):
        raise snapshot.damaged("question", "there for a suspended call, and for no other")
    return CallRecord(
        status=status,
        home=None if snapshot.optional_text("home") is None else _identity(snapshot, "home"),
        xid=snapshot.optional_text("xid"),
        channel=snapshot.optional_text("channel"),
        is_approved=snapshot.flag("is_approved"),
        question=None
        if question is None
        else _read_question(_part(snapshot, "question", question)),
    )


def _read_question(snapshot: Snapshot) -> OpenQuestion:
    repeat = Repeat(
        snapshot.text("call_id"),
        snapshot.text("tool"),
        snapshot.optional_text("digest"),
        _read_use(snapshot, "first", _nullable(snapshot, "first")),
        snapshot.word("layer", Layer),
    )
    return OpenQuestion(_identity(snapshot, "home"), _identity(snapshot, "about"), repeat)


def _identity(snapshot: Snapshot, name: str) -> str:
    key = snapshot.text(name)
    if not is_identity(key):
        raise snapshot.damaged(name, "the key of an identity")
    return key


def _use(use: FirstUse) -> Document:
    return {
        "call_id": use.call_id,
        "request": use.request,
        "at_ms": use.at_ms,
        "channel": use.channel,
    }


def _read_use(parent: Snapshot, name: str, value: JsonValue) -> FirstUse:
    snapshot = _part(parent, name, value)
    at_ms = snapshot.fields.get("at_ms")
    # A host's clock may start anywhere, so a time may be negative, unlike every count.
    if type(at_ms) is not int:
        raise snapshot.damaged("at_ms", "a whole number")
    return FirstUse(
        snapshot.text("call_id"), snapshot.text("request"), at_ms, snapshot.optional_text("channel")
    )


def _optional_whole(snapshot: Snapshot, name: str) -> int | None:
    return None if _nullable(snapshot, name) is None else snapshot.whole(name)


def _nullable(snapshot: Snapshot, name: str) -> JsonValue:
    # A null is a value; a missing field means a truncated snapshot.
    if name not in snapshot.fields:
        raise snapshot.damaged(name, "there")
    return snapshot.fields[name]


def _part(parent: Snapshot, name: str, value: JsonValue) -> Snapshot:
    if not isinstance(value, Mapping):
        raise parent.damaged(name, "an object in each place")
    return Snapshot(f"{parent.guard}, {name}", value)
