"""Which days before a wave are compared with which of the wave: each weekday in one proportion."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from analysis.baseline import Baseline
from analysis.histograms import Durations
from reducer.vocabulary import Metric

# With fewer weekdays in common a week is not what is compared any more.
LEAST_WEEKDAYS = 5
WEEK = range(7)


class MatchedDays(NamedTuple):
    """Days of the wave, and those before it with the same weekdays in the same proportion."""

    after: tuple[dt.date, ...]
    before: tuple[dt.date, ...]

    @property
    def weekdays(self) -> int:
        """How many weekdays are compared."""
        return len({day.weekday() for day in self.before})


@dataclass(frozen=True, slots=True, eq=False)
class MatchedEvidence:
    """Owners and durations of matched days alone, where those are not all days of both sides.

    `owners` are owner totals (analysis.frames) over `days.after`, and `baseline` is over exactly
    `days.before`. `untold` says in words which metrics too few prompts of `days.after` told.
    """

    days: MatchedDays
    owners: pd.DataFrame
    durations: Durations | None
    baseline: Baseline
    untold: Mapping[Metric, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.baseline.days != self.days.before:
            raise ValueError(
                f"the baseline is over {len(self.baseline.days)} days and not over the "
                f"{len(self.days.before)} matched ones; give the days of the same weekdays"
            )


def matched_days(after: Sequence[dt.date], before: Sequence[dt.date]) -> MatchedDays | None:
    """Match days by weekday, the first ones of each; None with fewer than five weekdays in common.

    A wave of two weeks has each weekday twice for every one before it, so that both sides weigh
    their weekdays alike. A weekday that is short on either side is left out of both.
    """
    times = max(1, round(len(after) / len(before))) if before else 1
    for each in dict.fromkeys((times, 1)):
        found = _matched(after, before, each)
        if found.weekdays >= LEAST_WEEKDAYS:
            return found
    return None


def _matched(after: Sequence[dt.date], before: Sequence[dt.date], times: int) -> MatchedDays:
    kept: tuple[list[dt.date], list[dt.date]] = ([], [])
    for weekday in WEEK:
        own, earlier = (_of(days, weekday) for days in (after, before))
        pairs = min(len(own) // times, len(earlier))
        kept[0].extend(own[: pairs * times])
        kept[1].extend(earlier[:pairs])
    return MatchedDays(tuple(sorted(kept[0])), tuple(sorted(kept[1])))


def _of(days: Iterable[dt.date], weekday: int) -> list[dt.date]:
    return sorted(day for day in days if day.weekday() == weekday)
