"""The state of all guards of one session together."""

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
from reducer.guards.mistakes import mistaken
from reducer.guards.modes import check_mode, check_route, mode_on
from reducer.guards.repeated_failure import RepeatedFailure
from reducer.guards.side_effect import SideEffectDuplicate
from reducer.guards.side_effect.ladder import Ladder
from reducer.guards.snapshot import Beginning
from reducer.guards.total_calls import TotalCalls
from reducer.vocabulary import LoopType, Mode, Route

PIPELINE = "pipeline"
SCHEMA = 1
# From the most specific to the broadest (docs/guards).
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
    """The settings that are no mode: what the host wants of each guard.

    `invalid_parameters` and `total_calls` are limits of the host's own: no rollout is about them
    and no mode governs them, so they hold when every guard is off. None switches one off.
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
            remedy = "pass Ladder.parse(setting) (reducer.guards.side_effect)"
            raise mistaken("ladder", self.ladder, remedy)


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
            ValueError: `modes` names another guard or holds what is no Mode, the route is no
                Route, or a setting is out of its range.
        """
        check_modes(modes, route)
        mode_of = effective(modes, route)
        starts = {guard: Beginning(mode, route) for guard, mode in mode_of.items()}
        return cls.begun(starts, Limits() if limits is None else limits)

    @classmethod
    def begun(cls, starts: Mapping[str, Beginning], limits: Limits) -> "Pipeline":
        """Return the pipeline of a new session, each guard in the mode and on the route given."""
        if not isinstance(limits, Limits):
            raise mistaken("limits", limits, "pass a Limits (reducer.guards.pipeline)")
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
        """Whether the duplicate-call-id guard gives calls names that are unique."""
        return self.duplicate.mode.rank > Mode.SHADOW.rank


def effective(modes: Mapping[str, Mode], route: Route) -> Mapping[str, Mode]:
    """Return the mode of each guard on a route: off on all but the interactive foreground."""
    return {guard: mode_on(route, modes.get(guard, Mode.OFF)) for guard in GUARDS}


def check_modes(modes: object, route: object) -> None:
    """Raise ValueError for modes that are no mapping of the four guards, or no route."""
    if not isinstance(modes, Mapping):
        remedy = "pass a mapping from guard to Mode (reducer.vocabulary), {} for every guard off"
        raise mistaken("modes", modes, remedy)
    for guard, mode in modes.items():
        if guard not in GUARDS:
            raise ValueError(f"modes name {guard!r}, no guard of the pipeline; use {GUARDS}")
        check_mode(guard, mode)
    check_route(route)
