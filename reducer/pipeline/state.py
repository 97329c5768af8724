"""Pipeline state: the state of all guards of one session, and its snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from guardwave.reducer.guards import (
    duplicate_call_id,
    identical_call,
    repeated_failure,
    side_effect,
)
from guardwave.reducer.guards.argument_errors import argument_error
from guardwave.reducer.guards.duplicate_call_id import DuplicateCallId
from guardwave.reducer.guards.identical_call import IdenticalCall
from guardwave.reducer.guards.modes import check_mode, check_route, mode_on
from guardwave.reducer.guards.repeated_failure import RepeatedFailure
from guardwave.reducer.guards.side_effect import Ladder, SideEffectDuplicate
from guardwave.reducer.guards.snapshot import (
    Document,
    Snapshot,
    StartSettings,
    seal,
    start_settings,
    unseal,
)
from guardwave.reducer.pipeline import invalid_params, total_calls
from guardwave.reducer.pipeline.invalid_params import InvalidParams
from guardwave.reducer.pipeline.total_calls import TotalCalls
from guardwave.reducer.vocabulary import LoopType, Mode, Route

PIPELINE = "pipeline"
SCHEMA = 1
# From the most specific to the broadest (`docs/guards`).
GUARDS = (
    duplicate_call_id.GUARD,
    identical_call.GUARD,
    side_effect.GUARD,
    repeated_failure.GUARD,
)


class RunningCall(NamedTuple):
    """A call of the batch that runs or waits for a person: its key, name and tool."""

    key: str
    call_id: str | None
    tool: str


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings of the guards that are not modes.

    `invalid_parameters` and `total_calls` have no rollout and no mode, so they hold even when every
    guard is off. None switches such a limit off.
    """

    ladder: Ladder = field(default_factory=Ladder)
    suffix: str = duplicate_call_id.SUFFIX
    generated_prefix: str = duplicate_call_id.GENERATED_PREFIX
    identical_threshold: int = identical_call.THRESHOLD
    total_calls: int | None = total_calls.DEFAULT_LIMIT
    invalid_parameters: int | None = invalid_params.DEFAULT_LIMIT
    max_evidence_resets: int = identical_call.MAX_EVIDENCE_RESETS

    def __post_init__(self) -> None:
        if not isinstance(self.ladder, Ladder):
            remedy = "pass Ladder.parse(setting) (guardwave.guards.side_effect)"
            raise argument_error("ladder", self.ladder, remedy)


_NO_INVALID_CALLS = InvalidParams()
_NO_CALLS = TotalCalls()


class Pipeline(NamedTuple):
    """The state of every guard. `start` makes it, `pipeline.reduce` moves it.

    `running` are the calls of the batch that run or wait. `is_blocked` means that the side-effect
    guard blocked a call of the batch for good. `stopped_by` is the protection that ended the turn,
    None while the turn goes on. `last_key` numbers the calls whose ids may not be unique.
    """

    duplicate: DuplicateCallId
    identical: IdenticalCall
    side_effect: SideEffectDuplicate
    repeated: RepeatedFailure
    invalid: InvalidParams = _NO_INVALID_CALLS
    total: TotalCalls = _NO_CALLS
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
            ValueError: `modes` names an unknown guard or holds no Mode, the route is not a Route,
                or a setting is out of its range.
        """
        check_modes(modes, route)
        mode_of = modes_on_route(modes, route)
        starts = {guard: StartSettings(mode, route) for guard, mode in mode_of.items()}
        return cls.from_starts(starts, Limits() if limits is None else limits)

    @classmethod
    def from_starts(cls, starts: Mapping[str, StartSettings], limits: Limits) -> "Pipeline":
        """Return the pipeline of a new session, with a mode and a route for each guard."""
        if not isinstance(limits, Limits):
            raise argument_error("limits", limits, "pass a Limits (guardwave.guards.pipeline)")
        duplicate = starts[duplicate_call_id.GUARD]
        identical = starts[identical_call.GUARD]
        effects = starts[side_effect.GUARD]
        repeated = starts[repeated_failure.GUARD]
        return cls(
            DuplicateCallId.start(
                duplicate.mode,
                route=duplicate.route,
                suffix=limits.suffix,
                generated_prefix=limits.generated_prefix,
            ),
            IdenticalCall.start(
                identical.mode,
                route=identical.route,
                threshold=limits.identical_threshold,
                max_evidence_resets=limits.max_evidence_resets,
            ),
            SideEffectDuplicate.start(effects.mode, route=effects.route, ladder=limits.ladder),
            RepeatedFailure.start(repeated.mode, route=repeated.route),
            InvalidParams(limits.invalid_parameters),
            TotalCalls(limits.total_calls),
        )

    @property
    def renames(self) -> bool:
        """Whether the duplicate-call-id guard gives calls unique names."""
        return self.duplicate.mode.rank > Mode.SHADOW.rank


def modes_on_route(modes: Mapping[str, Mode], route: Route) -> Mapping[str, Mode]:
    """Return the modes on a route: off everywhere but in the interactive foreground."""
    return {guard: mode_on(route, modes.get(guard, Mode.OFF)) for guard in GUARDS}


def check_modes(modes: object, route: object) -> None:
    """Raise ValueError unless `modes` maps guards of the pipeline to modes, on a valid route."""
    if not isinstance(modes, Mapping):
        remedy = "pass a mapping from guard to Mode (guardwave.guards), {} for every guard off"
        raise argument_error("modes", modes, remedy)
    for guard, mode in modes.items():
        if guard not in GUARDS:
            raise ValueError(f"modes name {guard!r}, no guard of the pipeline; use {GUARDS}")
        check_mode(guard, mode)
    check_route(route)


# The field of each guard's own snapshot in the pipeline's snapshot.
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
    """Return the dumped state, with its settings.

    A guard whose own snapshot has a newer schema starts anew under `limits`, in its mode and on
    its route as far as they can be read, with enforcement disabled until the next prompt. If the
    pipeline's snapshot has a newer schema, this happens to every guard, in a new session.

    Raises:
        ValueError: the document is damaged or not of a pipeline; it names the field.
    """
    limits = Limits() if limits is None else limits
    snapshot = unseal(document, guard=PIPELINE, schema=SCHEMA)
    if snapshot is None:
        return _start_anew(document, limits)  # type: ignore[arg-type]  # unseal saw a mapping
    fresh = _start_anew(snapshot.fields, limits)
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
        # The only guard without a setting of the host.
        repeated_failure.restore(snapshot.mapping("repeated")),
        invalid_params.restore(snapshot.mapping("invalid"), limit=limits.invalid_parameters),
        total_calls.restore(snapshot.mapping("total"), limit=limits.total_calls),
        request=snapshot.optional_text("request"),
        running=_running(snapshot),
        is_blocked=snapshot.flag("is_blocked"),
        stopped_by=snapshot.word("stopped_by", LoopType) if is_stopped else None,
        last_key=snapshot.whole("last_key"),
    )


def _start_anew(document: Document, limits: Limits) -> Pipeline:
    """Return a new session in the modes and routes that can be read, with enforcement disabled."""
    fresh = Pipeline.from_starts(
        {guard: _start_settings(document.get(name)) for guard, name in _PARTS.items()}, limits
    )
    return fresh._replace(
        duplicate=fresh.duplicate._replace(is_enforcement_disabled=True),
        identical=fresh.identical._replace(is_enforcement_disabled=True),
        side_effect=fresh.side_effect._replace(is_enforcement_disabled=True),
        repeated=fresh.repeated._replace(is_enforcement_disabled=True),
    )


def _start_settings(part: object) -> StartSettings:
    start = start_settings(part if isinstance(part, Mapping) else {})
    # Alone, two of the guards leave the route to their host. In the pipeline every guard is off
    # outside the foreground.
    return StartSettings(mode_on(start.route, start.mode), start.route)


def _running(snapshot: Snapshot) -> tuple[RunningCall, ...]:
    calls = []
    for item in snapshot.items("running"):
        match item:
            case [str() as key, None | str() as call_id, str() as tool]:
                calls.append(RunningCall(key, call_id, tool))
            case _:
                raise snapshot.damaged("running", "a list of a key, a call id and a tool each")
    return tuple(calls)
