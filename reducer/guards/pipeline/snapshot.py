"""The snapshot of all guards of one session together, and back."""

from collections.abc import Mapping

from reducer.guards import (
    duplicate_call_id,
    identical_call,
    invalid_params,
    repeated_failure,
    side_effect,
    total_calls,
)
from reducer.guards.modes import mode_on
from reducer.guards.pipeline.state import PIPELINE, SCHEMA, Limits, Pipeline, RunningCall
from reducer.guards.snapshot import Beginning, Document, Snapshot, beginning, seal, unseal
from reducer.vocabulary import LoopType

# Under which name a guard's own snapshot stands in that of the pipeline.
_PARTS = {
    duplicate_call_id.GUARD: "duplicate",
    identical_call.GUARD: "identical",
    side_effect.GUARD: "side_effect",
    repeated_failure.GUARD: "repeated",
}


def dump(state: Pipeline) -> Document:
    """Return the state as plain JSON values: the session's checkpoint."""
    fields: Document = {
        "duplicate": duplicate_call_id.dump(state.duplicate),
        "identical": identical_call.dump(state.identical),
        "side_effect": side_effect.dump(state.side_effect),
        "repeated": repeated_failure.dump(state.repeated),
        "invalid": invalid_params.dump(state.invalid),
        "total": total_calls.dump(state.total),
        "request": state.request,
        "running": [list(call) for call in state.running],
        "is_blocked": state.is_blocked,
        "stopped_by": None if state.stopped_by is None else state.stopped_by.value,
        "last_key": state.last_key,
    }
    return seal(PIPELINE, SCHEMA, fields)


def restore(document: object, *, limits: Limits | None = None) -> Pipeline:
    """Return the state that was dumped, with the settings it was dumped with.

    A guard whose own snapshot is of a newer schema begins anew under `limits`, in its mode and
    route as far as they can be read, with enforcement disabled until the next prompt. When the
    pipeline's is, a new session begins in which that holds for every guard.

    Raises:
        ValueError: the document is damaged or no pipeline's; naming the field.
    """
    limits = Limits() if limits is None else limits
    snapshot = unseal(document, guard=PIPELINE, schema=SCHEMA)
    if snapshot is None:
        return _begun_anew(document, limits)  # type: ignore[arg-type]  # unseal saw a mapping
    fresh = _begun_anew(snapshot.fields, limits)
    duplicate = snapshot.mapping("duplicate")
    identical = snapshot.mapping("identical")
    effects = snapshot.mapping("side_effect")
    is_stopped = snapshot.optional_text("stopped_by") is not None
    return Pipeline(
        fresh.duplicate
        if unseal(duplicate, guard=duplicate_call_id.GUARD, schema=duplicate_call_id.SCHEMA) is None
        else duplicate_call_id.restore(duplicate),
        fresh.identical
        if unseal(identical, guard=identical_call.GUARD, schema=identical_call.SCHEMA) is None
        else identical_call.restore(identical),
        fresh.side_effect
        if unseal(effects, guard=side_effect.GUARD, schema=side_effect.SCHEMA) is None
        else side_effect.restore(effects),
        # The only one without a setting of the host's.
        repeated_failure.restore(snapshot.mapping("repeated")),
        invalid_params.restore(snapshot.mapping("invalid"), limit=limits.invalid_parameters),
        total_calls.restore(snapshot.mapping("total"), limit=limits.total_calls),
        request=snapshot.optional_text("request"),
        running=_running(snapshot),
        is_blocked=snapshot.flag("is_blocked"),
        stopped_by=snapshot.word("stopped_by", LoopType) if is_stopped else None,
        last_key=snapshot.whole("last_key"),
    )


def _begun_anew(document: Document, limits: Limits) -> Pipeline:
    """Return a new session in the modes and on the routes that can be read, never to enforce."""
    fresh = Pipeline.begun(
        {guard: _beginning(document.get(name)) for guard, name in _PARTS.items()}, limits
    )
    return fresh._replace(
        duplicate=fresh.duplicate._replace(is_enforcement_disabled=True),
        identical=fresh.identical._replace(is_enforcement_disabled=True),
        side_effect=fresh.side_effect._replace(is_enforcement_disabled=True),
        repeated=fresh.repeated._replace(is_enforcement_disabled=True),
    )


def _beginning(part: object) -> Beginning:
    start = beginning(part if isinstance(part, Mapping) else {})
    # Alone, two of the guards leave the route to their host; here every guard is off off it.
    return Beginning(mode_on(start.route, start.mode), start.route)


def _running(snapshot: Snapshot) -> tuple[RunningCall, ...]:
    calls = []
    for each in snapshot.items("running"):
        match each:
            case [str() as key, None | str() as call_id, str() as tool]:
                calls.append(RunningCall(key, call_id, tool))
            case _:
                raise snapshot.damaged("running", "a list of a key, a call id and a tool each")
    return tuple(calls)
