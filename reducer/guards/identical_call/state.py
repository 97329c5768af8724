"""The state of the identical-call guard: one run, checkpointed at any step."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from reducer.guards.identical_call.events import Failure, SynthesisCause, Turn, TurnMode
from reducer.guards.identical_call.tally import NOTHING_COUNTED, Tallies, Tally
from reducer.guards.modes import check_mode, check_route
from reducer.guards.snapshot import Document, Snapshot, beginning, seal, unseal
from reducer.vocabulary import GuardPhase, Mode, Route

GUARD = "identical_call"
SCHEMA = 1
THRESHOLD = 5
LEAST_THRESHOLD = 2
MAX_EVIDENCE_RESETS = 32


class PendingCall(NamedTuple):
    """A call of the batch that runs: its id, and its fingerprint where it was counted."""

    call_id: str | None
    fingerprint: str | None


class IdenticalCall(NamedTuple):
    """The state of a run. It holds ids and digests, never arguments, results or the note.

    `turn` is the model turn that is open, `pending` the batch that runs or waits for an approval;
    None where there is none. `failure` ends the run for good, `is_finished` until it is taken up.
    """

    mode: Mode
    route: Route
    threshold: int
    max_evidence_resets: int
    tallies: Tallies = NOTHING_COUNTED
    turn: Turn | None = None
    pending: tuple[PendingCall, ...] | None = None
    failure: Failure | None = None
    is_finished: bool = False
    phase: GuardPhase = GuardPhase.IDLE
    is_enforcement_disabled: bool = False

    @classmethod
    def start(
        cls,
        mode: Mode,
        *,
        route: Route = Route.INTERACTIVE_FOREGROUND,
        threshold: int = THRESHOLD,
        max_evidence_resets: int = MAX_EVIDENCE_RESETS,
    ) -> "IdenticalCall":
        """Return the state of a new run that fails at `threshold` equal calls.

        Raises:
            ValueError: the mode or the route is a plain text, a threshold below 2, with which
                each turn would be a synthesis turn, or a negative number of evidence resets.
        """
        check_mode(GUARD, mode)
        check_route(route)
        _check("threshold", threshold, least=LEAST_THRESHOLD)
        _check("max_evidence_resets", max_evidence_resets, least=0)
        return cls(mode, route, threshold, max_evidence_resets)

    @property
    def acts_as(self) -> Mode:
        """The mode that decides: warn in place of enforce while enforcement is disabled."""
        return self.mode.at_most(Mode.WARN) if self.is_enforcement_disabled else self.mode

    @property
    def max_count(self) -> int:
        """The highest count of the run."""
        return self.tallies.leading.times

    @property
    def is_repeating(self) -> bool:
        """Whether one more equal call would come to the threshold."""
        return self.max_count >= self.threshold - 1

    @property
    def next_turn_mode(self) -> TurnMode | None:
        """The mode of the next model turn, budget aside; None when none is due.

        None is due while a batch runs or waits, after a failure and after the final answer.
        """
        if self.failure is not None or self.is_finished or self.pending is not None:
            return None
        if self.turn is not None:
            return self.turn.mode
        is_synthesis = self.is_repeating and self.acts_as is Mode.ENFORCE
        return TurnMode.SYNTHESIS_ONLY if is_synthesis else TurnMode.NORMAL


def dump(state: IdenticalCall) -> Document:
    """Return the state as plain JSON values: the run's checkpoint."""
    turn, pending, failure = state.turn, state.pending, state.failure
    fields: Document = {
        "mode": state.mode.value,
        "route": state.route.value,
        "threshold": state.threshold,
        "max_evidence_resets": state.max_evidence_resets,
        "tallies": {call: list(tally) for call, tally in state.tallies.by_call.items()},
        "leader": state.tallies.leader,
        "resets_used": state.tallies.resets_used,
        "last_ordinal": state.tallies.last_ordinal,
        "turn_mode": None if turn is None else turn.mode.value,
        "turn_cause": None if turn is None or turn.cause is None else turn.cause.value,
        "pending": None if pending is None else [list(call) for call in pending],
        "failure": None if failure is None else failure.value,
        "is_finished": state.is_finished,
        "phase": state.phase.value,
        "is_enforcement_disabled": state.is_enforcement_disabled,
    }
    return seal(GUARD, SCHEMA, fields)


def restore(document: object) -> IdenticalCall:
    """Return the state that was dumped.

    A snapshot of a newer schema gives a new run in its mode and route as far as they can be read,
    with enforcement disabled until the next run.

    Raises:
        ValueError: the document is damaged or another guard's; naming the field.
    """
    snapshot = unseal(document, guard=GUARD, schema=SCHEMA)
    if snapshot is None:
        mode, route = beginning(document)  # type: ignore[arg-type]  # unseal saw a mapping
        return IdenticalCall.start(mode, route=route)._replace(is_enforcement_disabled=True)
    threshold = snapshot.whole("threshold")
    if threshold < LEAST_THRESHOLD:
        raise snapshot.damaged("threshold", f"a whole number from {LEAST_THRESHOLD}")
    tallies = _tallies(snapshot)
    is_failed = snapshot.optional_text("failure") is not None
    return IdenticalCall(
        mode=snapshot.word("mode", Mode),
        route=snapshot.word("route", Route),
        threshold=threshold,
        max_evidence_resets=snapshot.whole("max_evidence_resets"),
        tallies=tallies,
        turn=_turn(snapshot),
        pending=_pending(snapshot, tallies.by_call),
        failure=snapshot.word("failure", Failure) if is_failed else None,
        is_finished=snapshot.flag("is_finished"),
        phase=snapshot.word("phase", GuardPhase),
        is_enforcement_disabled=snapshot.flag("is_enforcement_disabled"),
    )


def _check(name: str, number: object, *, least: int) -> None:
    # True is an int to Python and no number to a reader.
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise ValueError(f"{name} is {number!r}; give a whole number from {least}")


def _tallies(snapshot: Snapshot) -> Tallies:
    by_call = {call: _tally(snapshot, found) for call, found in snapshot.mapping("tallies").items()}
    leader = snapshot.optional_text("leader")
    leaders: Collection[str | None] = [None]
    if by_call:
        most = max(tally.times for tally in by_call.values())
        leaders = [call for call, tally in by_call.items() if tally.times == most]
    if leader not in leaders:
        raise snapshot.damaged("leader", "the call with the highest count")
    resets_used, last_ordinal = snapshot.whole("resets_used"), snapshot.whole("last_ordinal")
    return Tallies(by_call, leader, resets_used, last_ordinal)


def _tally(snapshot: Snapshot, found: object) -> Tally:
    match found:
        case [int() as count, None | str() as evidence, int() as ordinal]:
            fields = Snapshot(snapshot.guard, {"tallies": count, "ordinal": ordinal})
            return Tally(fields.whole("tallies"), evidence, fields.whole("ordinal"))
    raise snapshot.damaged("tallies", "lists of a count, an evidence digest and an ordinal")


def _turn(snapshot: Snapshot) -> Turn | None:
    is_caused = snapshot.optional_text("turn_cause") is not None
    if snapshot.optional_text("turn_mode") is None:
        return None
    cause = snapshot.word("turn_cause", SynthesisCause) if is_caused else None
    return Turn(snapshot.word("turn_mode", TurnMode), cause)


def _pending(snapshot: Snapshot, counted: Mapping[str, Tally]) -> tuple[PendingCall, ...] | None:
    if snapshot.is_null("pending"):
        return None
    calls = []
    for each in snapshot.items("pending"):
        match each:
            case [None | str() as call_id, None | str() as fingerprint]:
                calls.append(PendingCall(call_id, fingerprint))
            case _:
                raise snapshot.damaged("pending", "pairs of a call id and a fingerprint")
    if any(call.fingerprint not in counted for call in calls if call.fingerprint is not None):
        raise snapshot.damaged("pending", "calls that were counted")
    return tuple(calls)
