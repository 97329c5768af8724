"""The state of all guards of one session together, and its snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reducer.guards import (
    duplicate_call_id,
    identical_call,
    invalid_params,
    repeated_failure,
    side_effect,
    total_calls,
)
from reducer.guards.duplicate_call_id import DuplicateCallId
from reducer.guards.identical_call import IdenticalCall
from reducer.guards.invalid_params import InvalidParams
from reducer.guards.modes import mode_on
from reducer.guards.repeated_failure import RepeatedFailure
from reducer.guards.side_effect import SideEffectDuplicate
from reducer.guards.side_effect.ladder import Ladder
from reducer.guards.snapshot import Document, Snapshot, seal, unseal
from reducer.guards.total_calls import TotalCalls
from reducer.vocabulary import LoopType, Mode, Route

PIPELINE = "pipeline"
SCHEMA = 1
# From the most specific to the broadest (guards.md 2.6).
GUARDS = (
    duplicate_call_id.GUARD,
    identical_call.GUARD,
    side_effect.GUARD,
    repeated_failure.GUARD,
)


class RunningCall(NamedTuple):
    """A call of the batch that runs or waits for a person: its key, its name, its tool."""

    key: str
    call_id: str | None
    tool: str


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings that are no mode: what the host wants of each guard."""

    ladder: Ladder = field(default_factory=Ladder)
    suffix: str = duplicate_call_id.SUFFIX
    generated_prefix: str = duplicate_call_id.GENERATED_PREFIX
    identical_threshold: int = identical_call.THRESHOLD
    total_calls: int = total_calls.DEFAULT_LIMIT


_NONE_INVALID = InvalidParams()
_NONE_YET = TotalCalls()


class Pipeline(NamedTuple):
    """Every guard's state. `start` makes it, `pipeline.reduce` moves it.

    `running` are the calls of the batch that run or wait. `is_blocked` says that the side-effect
    guard kept a call of it back for good. `stopped_by` is what ended the turn, None while it goes
    on. `last_key` numbers the calls whose ids no guard keeps apart.
    """

    duplicate: DuplicateCallId
    identical: IdenticalCall
    side_effect: SideEffectDuplicate
    repeated: RepeatedFailure
    invalid: InvalidParams = _NONE_INVALID
    total: TotalCalls = _NONE_YET
    request: str | None = None
    running: tuple[RunningCall, ...] = ()
    is_blocked: bool = False
    stopped_by: LoopType | None = None
    last_key: int = 0

    @classmethod
    def start(
        cls,
        modes: Mapping[str, Mode],
        *,
        route: Route = Route.INTERACTIVE_FOREGROUND,
        limits: Limits | None = None,
    ) -> "Pipeline":
        """Return the pipeline of a new session. A guard that `modes` does not name is off.

        Raises:
            ValueError: `modes` names another guard, or a setting is out of its range.
        """
        limits = Limits() if limits is None else limits
        mode_of = effective(modes, route)
        return cls(
            DuplicateCallId.start(
                mode_of[duplicate_call_id.GUARD],
                route=route,
                suffix=limits.suffix,
                generated_prefix=limits.generated_prefix,
            ),
            IdenticalCall.start(
                mode_of[identical_call.GUARD], route=route, threshold=limits.identical_threshold
            ),
            SideEffectDuplicate.start(
                mode_of[side_effect.GUARD], route=route, ladder=limits.ladder
            ),
            RepeatedFailure.start(mode_of[repeated_failure.GUARD], route=route),
            total=TotalCalls(limits.total_calls),
        )

    @property
    def renames(self) -> bool:
        """Whether the duplicate-call-id guard gives calls names that are unique."""
        return self.duplicate.mode.rank > Mode.SHADOW.rank


def effective(modes: Mapping[str, Mode], route: Route) -> Mapping[str, Mode]:
    """Return the mode of each guard on a route: off on all but the interactive foreground.

    Raises:
        ValueError: `modes` names a guard that is none of the four.
    """
    unknown = sorted(set(modes) - set(GUARDS))
    if unknown:
        raise ValueError(f"modes name {unknown[0]!r}, no guard of the pipeline; use {GUARDS}")
    return {guard: mode_on(route, modes.get(guard, Mode.OFF)) for guard in GUARDS}


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


def restore(document: object) -> Pipeline:
    """Return the state that was dumped.

    A guard whose own snapshot is of a newer schema begins anew with enforcement disabled. When the
    pipeline's is, a new session begins with every guard in shadow.

    Raises:
        ValueError: the document is damaged or no pipeline's; naming the field.
    """
    snapshot = unseal(document, guard=PIPELINE, schema=SCHEMA)
    if snapshot is None:
        return Pipeline.start(dict.fromkeys(GUARDS, Mode.SHADOW))
    is_stopped = snapshot.optional_text("stopped_by") is not None
    return Pipeline(
        duplicate_call_id.restore(snapshot.mapping("duplicate")),
        identical_call.restore(snapshot.mapping("identical")),
        side_effect.restore(snapshot.mapping("side_effect")),
        repeated_failure.restore(snapshot.mapping("repeated")),
        invalid_params.restore(snapshot.mapping("invalid")),
        total_calls.restore(snapshot.mapping("total")),
        request=snapshot.optional_text("request"),
        running=_running(snapshot),
        is_blocked=snapshot.flag("is_blocked"),
        stopped_by=snapshot.word("stopped_by", LoopType) if is_stopped else None,
        last_key=snapshot.whole("last_key"),
    )


def _running(snapshot: Snapshot) -> tuple[RunningCall, ...]:
    calls = []
    for each in snapshot.items("running"):
        match each:
            case [str() as key, None | str() as call_id, str() as tool]:
                calls.append(RunningCall(key, call_id, tool))
            case _:
                raise snapshot.damaged("running", "a list of a key, a call id and a tool each")
    return tuple(calls)
