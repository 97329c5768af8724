"""How often a run has asked for each call, and what new evidence takes back."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from reducer.guards.canonical import DIGEST_BYTES


class Tally(NamedTuple):
    """One call: its count since the last restart, the digest of its last evidence key, its streak.

    `ordinal` numbers the run's streaks from 1; 0 while the call has not repeated.
    """

    times: int = 0
    evidence: str | None = None
    ordinal: int = 0


_NO_CALLS: Mapping[str, Tally] = {}


class Tallies(NamedTuple):
    """The counts of a run by the fingerprint of the call.

    `leader` has the highest count, and got there first among those still there.
    """

    by_call: Mapping[str, Tally] = _NO_CALLS
    leader: str | None = None
    resets_used: int = 0
    last_ordinal: int = 0

    @property
    def leading(self) -> Tally:
        """The tally of the leader; that of no call when nothing was counted."""
        return Tally() if self.leader is None else self.by_call[self.leader]

    def counted(
        self, calls: Sequence[str], *, streak_from: int, threshold: int, stops: bool
    ) -> "Counted":
        """Return the tallies after each of these calls was asked for once more.

        A call's streak gets its number when its count comes to `streak_from`. What comes after the
        first count at the threshold was not asked for if that `stops` the run.
        """
        tallies = dict(self.by_call)
        leader, most, last_ordinal = self.leader, self.leading.times, self.last_ordinal
        over: Tally | None = None
        for call in calls:
            times, evidence, ordinal = tallies.get(call, _NEVER)
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
        return Counted(Tallies(tallies, leader, self.resets_used, last_ordinal), over)

    def settled(self, found: Iterable[tuple[str, str]], *, max_resets: int) -> "Settled":
        """Return the tallies after evidence, given as pairs of call and digest of its key.

        The first evidence of a call is only kept. Evidence unlike the one before restarts a
        count above 1 at 1, as long as the run has restarts left (docs/guards).
        """
        tallies = dict(self.by_call)
        restarted = []
        resets_used = self.resets_used
        for call, evidence in found:
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
        return Settled(after, tuple(restarted))


class Counted(NamedTuple):
    """The tallies after a batch was asked for, and the first that came to the threshold."""

    tallies: Tallies
    over: Tally | None


class Settled(NamedTuple):
    """The tallies after a batch, and those whose count was restarted, as they were before."""

    tallies: Tallies
    restarted: tuple[Tally, ...]


_NEVER = Tally()
NOTHING_COUNTED = Tallies()


def evidence_digest(key: str) -> str:
    """Return 32 hex digits that stand for an evidence key, so that no content is kept."""
    return blake2b(key.encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).hexdigest()
