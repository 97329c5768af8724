"""Identical-call state: the tallies of one run, its open turn and batch, and its snapshot."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from guardwave.reducer.guards.calls import DIGEST_BYTES
from guardwave.reducer.guards.identical_call.events import Failure, SynthesisCause, Turn, TurnMode
from guardwave.reducer.guards.modes import check_mode, check_route
from guardwave.reducer.guards.snapshot import Document, Snapshot, seal, start_settings, unseal
from guardwave.reducer.vocabulary import GuardPhase, Mode, Route

GUARD = "identical_call"
SCHEMA = 1
THRESHOLD = 5
LEAST_THRESHOLD = 2
MAX_EVIDENCE_RESETS = 32


class Tally(NamedTuple):
    """The tally of one call: its count since the last restart, and its last evidence digest.

    `ordinal` numbers the run's streaks from 1; 0 while the call has not repeated.
    """

    times: int = 0
    evidence: str | None = None
    ordinal: int = 0


_NO_CALLS: Mapping[str, Tally] = {}


class Tallies(NamedTuple):
    """The tallies of a run by the fingerprint of the call.

    `leader` is the call with the highest count; of several, the one that reached it first.
    """

    by_call: Mapping[str, Tally] = _NO_CALLS
    leader: str | None = None
    resets_used: int = 0
    last_ordinal: int = 0

    @property
    def leading(self) -> Tally:
        """The tally of the leader, an empty one before the first count."""
        return Tally() if self.leader is None else self.by_call[self.leader]

    def add_calls(
        self, calls: Sequence[str], *, streak_from: int, threshold: int, stops: bool
    ) -> "CountResult":
        """Return the tallies with each of these calls counted once more.

        A streak gets its number when its count reaches `streak_from`. If a count at the threshold
        `stops` the run, the calls after it do not count.
        """
        tallies = dict(self.by_call)
        leader, most, last_ordinal = self.leader, self.leading.times, self.last_ordinal
        over: Tally | None = None
        for call in calls:
            times, evidence, ordinal = tallies.get(call, _NO_TALLY)
            times += 1
            if times >= streak_from and ordinal == 0:
                last_ordinal += 1
                ordinal = last_ordinal
            tallies[call] = Tally(times, evidence, ordinal)
            if times > most:
                leader, most = call, times
            if times >= threshold and over is None:
                over = tallies[call]
                if stops:
                    break
        return CountResult(Tallies(tallies, leader, self.resets_used, last_ordinal), over)

    def add_evidence(self, digests: Iterable[tuple[str, str]], *, max_resets: int) -> "Restarts":
        """Return the tallies after evidence, given as pairs of call and evidence digest.

        The first evidence of a call is only stored. Different evidence restarts a count above 1 at
        1, as long as the run has restarts left (`docs/guards`).
        """
        tallies = dict(self.by_call)
        restarted = []
        resets_used = self.resets_used
        for call, evidence in digests:
            before = tallies[call]
            is_new = before.evidence is not None and before.evidence != evidence
            if is_new and before.times > 1 and resets_used < max_resets:
                restarted.append(before)
                resets_used += 1
                tallies[call] = Tally(1, evidence)
            else:
                tallies[call] = before._replace(evidence=evidence)
        leader = self.leader
        if restarted:
            leader = max(tallies, key=lambda call: tallies[call].times)
        after = Tallies(tallies, leader, resets_used, self.last_ordinal)
        return Restarts(after, tuple(restarted))


class CountResult(NamedTuple):
    """The tallies after a batch of calls, and the first tally at the threshold."""

    tallies: Tallies
    over: Tally | None


class Restarts(NamedTuple):
    """The tallies after evidence, and the earlier tallies of the calls that restarted."""

    tallies: Tallies
    restarted: tuple[Tally, ...]


_NO_TALLY = Tally()
NO_TALLIES = Tallies()


def evidence_digest(key: str) -> str:
    """Return the digest of an evidence key, 32 hex digits, so that the state keeps no content."""
    return blake2b(key.encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).hexdigest()


class PendingCall(NamedTuple):
    """A call of the running batch: its id, and its fingerprint if it was counted."""

    call_id: str | None
    fingerprint: str | None


class IdenticalCall(NamedTuple):
    """The state of a run. It holds ids and digests, never arguments, results or the note.

    `turn` is the open model turn, `pending` the batch that runs or waits for an approval, or None.
    `failure` ends the run for good, `is_finished` until the run is continued.
    """

    mode: Mode
    route: Route
    threshold: int
    max_evidence_resets: int
    tallies: Tallies = NO_TALLIES
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
            ValueError: the mode or the route is a plain text, the threshold is below 2 (every turn
                would be a synthesis turn), or the number of evidence resets is negative.
        """
        check_mode(GUARD, mode)
        check_route(route)
        _check("threshold", threshold, least=LEAST_THRESHOLD)
        _check("max_evidence_resets", max_evidence_resets, least=0)
        return cls(mode, route, threshold, max_evidence_resets)

    @property
    def active_mode(self) -> Mode:
        """The mode that applies: warn instead of enforce while enforcement is disabled."""
        return self.mode.at_most(Mode.WARN) if self.is_enforcement_disabled else self.mode

    @property
    def max_count(self) -> int:
        """The highest count of the run."""
        return self.tallies.leading.times

    @property
    def is_repeating(self) -> bool:
        """Whether one more equal call would reach the threshold."""
        return self.max_count >= self.threshold - 1

    @property
    def next_turn_mode(self) -> TurnMode | None:
        """The mode of the next model turn without regard to the budget, None if no turn is due.

        No turn is due while a batch runs or waits, after a failure, and after the final answer.
        """
        if self.failure is not None or self.is_finished or self.pending is not None:
            return None
        if self.turn is not None:
            return self.turn.mode
        is_synthesis = self.is_repeating and self.active_mode is Mode.ENFORCE
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
    """Return the dumped state.

    A snapshot of a newer schema gives a new run in its mode and route as far as they can be read,
    with enforcement disabled until the next run.

    Raises:
        ValueError: the document is damaged or of another guard; it names the field.
    """
    snapshot = unseal(document, guard=GUARD, schema=SCHEMA)
    if snapshot is None:
        mode, route = start_settings(document)  # type: ignore[arg-type]  # unseal saw a mapping
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
    # isinstance takes True for an int.
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise ValueError(f"{name} is {number!r}; give a whole number from {least}")


def _tallies(snapshot: Snapshot) -> Tallies:
    by_call = {call: _tally(snapshot, item) for call, item in snapshot.mapping("tallies").items()}
    leader = snapshot.optional_text("leader")
    leaders: Collection[str | None] = [None]
    if by_call:
        most = max(tally.times for tally in by_call.values())
        leaders = [call for call, tally in by_call.items() if tally.times == most]
    if leader not in leaders:
        raise snapshot.damaged("leader", "the call with the highest count")
    resets_used, last_ordinal = snapshot.whole("resets_used"), snapshot.whole("last_ordinal")
    return Tallies(by_call, leader, resets_used, last_ordinal)


def _tally(snapshot: Snapshot, item: object) -> Tally:
    match item:
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
    for item in snapshot.items("pending"):
        match item:
            case [None | str() as call_id, None | str() as fingerprint]:
                calls.append(PendingCall(call_id, fingerprint))
            case _:
                raise snapshot.damaged("pending", "pairs of a call id and a fingerprint")
    if any(call.fingerprint not in counted for call in calls if call.fingerprint is not None):
        raise snapshot.damaged("pending", "calls that were counted")
    return tuple(calls)
