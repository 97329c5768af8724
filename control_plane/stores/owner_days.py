"""Owner-days as the store keeps them: one packed row for each owner, cell and day."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import date

from control_plane.stores.cells import Cell
from control_plane.stores.evidence_points import SCALE
from control_plane.stores.packing import unpack
from control_plane.stores.replies import octets
from reducer.rollout.state import EvidenceSource
from reducer.vocabulary import Cohort, Mode

# Where a row says how much coarser than `SCALE` its histogram is, and where how many loop events
# of other protections there were; the Lua library holds the same.
_COARSER, _LOOPS = 19, 20


@dataclass(frozen=True, slots=True)
class OwnerDay:
    """What one owner's prompts of one day added up to, in one cell.

    The counts, from `started` to `turns_untold`, lie in the order of the stored row. `tokens`,
    `turns` and `calls_after_would_stop` are sums over prompts, `would_stopped` and `stopped` count
    decisions, every other one counts prompts; `switched` those that were told with two modes or
    cohorts, whether or not a start or an end of them is known, `tokens_untold` and `turns_untold`
    those that ended and did not tell the two, which the sums lack. `loops` counts loop events of
    others than the cell's guard; None says that nobody counted them: the row is made from counters,
    or was imported without them. `version` is that of the prompts' earliest records. `durations`
    holds pairs of a base-2 exponential bucket at `scale` and its count, of milliseconds where
    `source` is events and of seconds where it is counters. `mode` is what the prompts' assignment
    ids say: off where none says one, which treats nobody.
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


# What of an owner-day is no sum that each row has.
_BESIDE = {"owner", "day", "cohort", "version", "durations", "scale", "source", "loops", "mode"}
# The sums of an owner-day in the order of the stored row; the Lua library holds the same.
SUMS = tuple(field.name for field in fields(OwnerDay) if field.name not in _BESIDE)


def unpacked(owner: str, day: date, cell: Cell, packed: object) -> OwnerDay:
    """Return an owner's row of a day as the store holds it."""
    assert cell.cohort is not None  # cells without a cohort hold no owner-days
    row = unpack(octets(packed))
    if not isinstance(row, list):
        raise TypeError(f"an owner-day row is stored as {type(row).__name__}, not as a list")
    # Pairs follow the places, so the length tells whether the row has one for loop events.
    head = _LOOPS + len(row) % 2
    tail = row[head:]
    bucket = 0
    durations: list[tuple[int, int]] = []
    for step, prompts in zip(tail[::2], tail[1::2], strict=True):
        bucket += step
        durations.append((bucket, prompts))
    scale = SCALE - row[_COARSER]
    is_told = head > _LOOPS and cell.source is EvidenceSource.EVENTS
    loops = row[_LOOPS] if is_told else None
    rest = (*row[: len(SUMS)], tuple(durations), scale, cell.source, loops, cell.mode or Mode.OFF)
    found = OwnerDay(owner, day, cell.cohort, cell.version, *rest)
    return _with_uncounted(found) if cell.source is EvidenceSource.COUNTERS else found


def _with_uncounted(row: OwnerDay) -> OwnerDay:
    """Return a row made from counters, its prompts untold where nothing was counted of them all.

    A counter that never came adds nothing, and a prompt that got through had a turn and tokens.
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

    A prompt over the first midnight, or one whose process was not up when it began, has its end
    alone on these days: it counts as started, as by events. What started and did not end is lost.
    """
    of_owner: defaultdict[str, list[OwnerDay]] = defaultdict(list)
    for row in rows:
        of_owner[row.owner].append(row)
    return tuple(row for own in of_owner.values() for row in _whole(own))


def _whole(rows: list[OwnerDay]) -> list[OwnerDay]:
    missing = sum(row.ended for row in rows) - sum(row.started for row in rows)
    fixed: list[OwnerDay] = []
    for row in rows:
        begun = min(max(missing, 0), max(row.ended - row.started, 0))
        missing -= begun
        fixed.append(replace(row, started=row.started + begun))
    open_ones = max(-missing, 0)
    disrupted = max(sum(row.disrupted for row in fixed) - sum(row.started for row in fixed), 0)
    for at, row in enumerate(fixed):
        lost = min(open_ones, max(row.started - row.ended, 0))
        too_many = min(disrupted, row.disrupted)
        open_ones, disrupted = open_ones - lost, disrupted - too_many
        unreliable = min(row.unreliable, row.started)
        fixed[at] = replace(
            row, lost=lost, disrupted=row.disrupted - too_many, unreliable=unreliable
        )
    return fixed
