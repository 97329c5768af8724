"""The side-effect guard's state as JSON values, and back."""

from collections.abc import Mapping

from reducer.guards.modes import mode_on
from reducer.guards.side_effect.ladder import Action, ApprovalScope, Ladder, Scope
from reducer.guards.side_effect.repeat import FirstUse, Layer, Repeat
from reducer.guards.side_effect.state import (
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
from reducer.guards.snapshot import Document, JsonValue, Snapshot, beginning, seal, unseal
from reducer.vocabulary import GuardPhase, Mode, Route


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
    """Return the state that a snapshot holds.

    One of a newer schema gives a fresh state of the same mode and route with the default ladder,
    whose enforcement is disabled until the next prompt: it knows neither what was done nor how the
    host set it.

    Raises:
        ValueError: a damaged snapshot, naming the field.
    """
    found = unseal(document, guard=GUARD, schema=SCHEMA)
    if found is None:
        assert isinstance(document, Mapping)
        start = beginning(document)
        fresh = SideEffectDuplicate.start(start.mode, route=start.route)
        return fresh._replace(is_enforcement_disabled=True)
    ladder = Ladder(
        action=found.word("action", Action),
        scope=found.word("scope", Scope),
        ttl_ms=_optional_whole(found, "ttl_ms"),
        approvals=found.word("approvals", ApprovalScope),
    )
    tracks = found.mapping("tracks")
    requests = found.mapping("requests")
    route = found.word("route", Route)
    return SideEffectDuplicate(
        mode=mode_on(route, found.word("mode", Mode)),
        route=route,
        ladder=ladder,
        tracks={key: _read_track(_part(found, "tracks", each)) for key, each in tracks.items()},
        requests={
            name: _read_log(_part(found, "requests", each)) for name, each in requests.items()
        },
        is_enforcement_disabled=found.flag("is_enforcement_disabled"),
    )


def _track(track: Track) -> Document:
    return {
        "first": None if track.first is None else _use(track.first),
        "running": [_use(use) for use in track.running],
        "is_nudged": track.is_nudged,
    }


def _read_track(found: Snapshot) -> Track:
    first = _nullable(found, "first")
    return Track(
        None if first is None else _read_use(found, "first", first),
        tuple(_read_use(found, "running", each) for each in found.items("running")),
        found.flag("is_nudged"),
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


def _read_log(found: Snapshot) -> RequestLog:
    refused = {
        key: _read_use(found, "refused", each) for key, each in found.mapping("refused").items()
    }
    marks = {key: _part(found, "marks", each) for key, each in found.mapping("marks").items()}
    return RequestLog(
        calls={
            call_id: _read_record(_part(found, "calls", each))
            for call_id, each in found.mapping("calls").items()
        },
        refused=refused,
        marks={
            key: Mark(each.whole("ordinal"), each.word("phase", GuardPhase), each.whole("repeats"))
            for key, each in marks.items()
        },
        next_ordinal=found.whole("next_ordinal"),
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


def _read_record(found: Snapshot) -> CallRecord:
    status = found.word("status", CallStatus)
    question = _nullable(found, "question")
    if (question is not None) is not (status is CallStatus.SUSPENDED):
        raise found.damaged("question", "there for a suspended call, and for no other")
    return CallRecord(
        status=status,
        home=None if found.optional_text("home") is None else _identity(found, "home"),
        xid=found.optional_text("xid"),
        channel=found.optional_text("channel"),
        is_approved=found.flag("is_approved"),
        question=None if question is None else _read_question(_part(found, "question", question)),
    )


def _read_question(found: Snapshot) -> OpenQuestion:
    repeat = Repeat(
        found.text("call_id"),
        found.text("tool"),
        found.optional_text("digest"),
        _read_use(found, "first", _nullable(found, "first")),
        found.word("layer", Layer),
    )
    return OpenQuestion(_identity(found, "home"), _identity(found, "about"), repeat)


def _identity(found: Snapshot, name: str) -> str:
    key = found.text(name)
    if not is_identity(key):
        raise found.damaged(name, "the key of an identity")
    return key


def _use(use: FirstUse) -> Document:
    return {
        "call_id": use.call_id,
        "request": use.request,
        "at_ms": use.at_ms,
        "channel": use.channel,
    }


def _read_use(around: Snapshot, name: str, value: JsonValue) -> FirstUse:
    found = _part(around, name, value)
    at_ms = found.fields.get("at_ms")
    # A host's clock may count from anywhere: a time may be negative, unlike every count.
    if type(at_ms) is not int:
        raise found.damaged("at_ms", "a whole number")
    return FirstUse(
        found.text("call_id"), found.text("request"), at_ms, found.optional_text("channel")
    )


def _optional_whole(found: Snapshot, name: str) -> int | None:
    return None if _nullable(found, name) is None else found.whole(name)


def _nullable(found: Snapshot, name: str) -> JsonValue:
    # A null says something; a field that is not there is a snapshot cut short.
    if name not in found.fields:
        raise found.damaged(name, "there")
    return found.fields[name]


def _part(around: Snapshot, name: str, value: JsonValue) -> Snapshot:
    if not isinstance(value, Mapping):
        raise around.damaged(name, "an object in each place")
    return Snapshot(f"{around.guard}, {name}", value)
