"""Owner-days: one packed row of sums for each owner, stratum and day."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import date

from guardwave.control_plane.stores.codec import unpack
from guardwave.control_plane.stores.evidence.delta.points import SCALE
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.control_plane.stores.server import reply_bytes
from guardwave.reducer.rollout.state import EvidenceSource
from guardwave.reducer.vocabulary import Cohort, Mode

# Places in a row: how much coarser than `SCALE` its histogram is, and the loop events of other
# protections; the Lua library holds the same.
_COARSER, _LOOPS = 19, 20


@dataclass(frozen=True, slots=True)
class OwnerDay:
    """The sums of one owner's prompts of one day in one stratum.

    The fields from `started` to `turns_untold` are in the order of the stored row. `tokens`,
    `turns` and `calls_after_would_stop` are sums over prompts, `would_stopped` and `stopped` count
    decisions, all others count prompts. `switched` prompts were reported with two modes or
    cohorts, even if neither start nor end is known; `tokens_untold` and `turns_untold` ended
    without reporting the value, which is missing from its sum.

    `loops` counts loop events of other protections than the stratum's guard; None means that
    nobody counted them: the row is made from counters, or was imported without them. `version` is
    that of the prompts' earliest records. `durations` holds pairs of a base-2 exponential bucket at
    `scale` and its count, in milliseconds if `source` is events and in seconds if it is counters.
    `mode` is that of the prompts' assignment ids; off, which treats nobody, if they have none.
    """

    owner: str
    day: date
    cohort: Cohort
    version: str
    started: int
    cancelled: int
    completed: int
    failed: int
    guard_stopped: int
    limit: int
    lost: int
    disrupted: int
    tokens: int
    turns: int
    would_stopped: int
    stopped: int
    calls_after_would_stop: int
    unreliable: int
    covered: int
    ended: int
    switched: int
    tokens_untold: int
    turns_untold: int
    durations: tuple[tuple[int, int], ...] = ()
    scale: int = SCALE
    source: EvidenceSource = EvidenceSource.EVENTS
    loops: int | None = None
    mode: Mode = Mode.OFF


# Fields that are no sums, or not sums of every row (`loops`).
_NOT_SUMS = {"owner", "day", "cohort", "version", "durations", "scale", "source", "loops", "mode"}
# The sums of an owner-day in the order of the stored row; the Lua library holds the same.
SUMS = tuple(field.name for field in fields(OwnerDay) if field.name not in _NOT_SUMS)


def unpack_owner_day(owner: str, day: date, stratum: Stratum, packed: object) -> OwnerDay:
    """Return an owner's row of a day from its stored form."""
    assert stratum.cohort is not None  # strata without a cohort hold no owner-days
    row = unpack(reply_bytes(packed))
    if not isinstance(row, list):
        raise TypeError(f"an owner-day row is stored as {type(row).__name__}, not as a list")
    # Pairs follow the sums, so an odd length shows that the row has a place for loop events.
    head = _LOOPS + len(row) % 2
    tail = row[head:]
    bucket = 0
    durations: list[tuple[int, int]] = []
    for step, prompts in zip(tail[::2], tail[1::2], strict=True):
        bucket += step
        durations.append((bucket, prompts))
    scale = SCALE - row[_COARSER]
    has_loops = head > _LOOPS and stratum.source is EvidenceSource.EVENTS
    loops = row[_LOOPS] if has_loops else None
    rest = (
        *row[: len(SUMS)],
        tuple(durations),
        scale,
        stratum.source,
        loops,
        stratum.mode or Mode.OFF,
    )
    found = OwnerDay(owner, day, stratum.cohort, stratum.version, *rest)
    return _count_missing(found) if stratum.source is EvidenceSource.COUNTERS else found


def _count_missing(row: OwnerDay) -> OwnerDay:
    """Return a row made from counters, with its missing tokens and turns.

    A prompt that got through had a turn and tokens, so a sum of 0 means that the counter of all
    prompts of the row never came.
    """
    if row.completed + row.guard_stopped + row.limit == 0:
        return row
    return replace(
        row,
        tokens_untold=0 if row.tokens else row.ended,
        turns_untold=0 if row.turns else row.ended,
    )


def whole_prompts(rows: Iterable[OwnerDay]) -> tuple[OwnerDay, ...]:
    """Return rows made from counters, in which no prompt ends, or is disrupted, without a start.

    A prompt across the first midnight, or one whose process was not up when it began, has only its
    end on these days: it counts as started, as it does by events. A prompt that started and did
    not end is lost.
    """
    by_owner: defaultdict[str, list[OwnerDay]] = defaultdict(list)
    for row in rows:
        by_owner[row.owner].append(row)
    return tuple(row for owner_rows in by_owner.values() for row in _balance(owner_rows))


def _balance(rows: list[OwnerDay]) -> list[OwnerDay]:
    """Add missing starts where ends exceed them, then spread losses and excess disruptions."""
    missing = sum(row.ended for row in rows) - sum(row.started for row in rows)
    balanced: list[OwnerDay] = []
    for row in rows:
        added = min(max(missing, 0), max(row.ended - row.started, 0))
        missing -= added
        balanced.append(replace(row, started=row.started + added))
    unended = max(-missing, 0)
    # Counters know no prompts: more disruptions than prompts means that some had several.
    excess = max(sum(row.disrupted for row in balanced) - sum(row.started for row in balanced), 0)
    for at, row in enumerate(balanced):
        lost = min(unended, max(row.started - row.ended, 0))
        surplus = min(excess, row.disrupted)
        unended, excess = unended - lost, excess - surplus
        balanced[at] = replace(
            row,
            lost=lost,
            disrupted=row.disrupted - surplus,
            unreliable=min(row.unreliable, row.started),
        )
    return balanced
