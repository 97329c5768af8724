"""Metric points as evidence: events of streams of counters and histograms."""

from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey, check_count
from guardwave.control_plane.stores.evidence.delta.strata import Stratum

# The finest scale of the histograms in owner-day rows.
SCALE = 7
COARSEST_SCALE = -10
# Limits of streams for each producer; the Lua library and docs/store.md hold the same.
MOST_STREAMS_OF_48_HOURS = 65_536
MOST_STREAMS_OF_7_DAYS = 262_144
# Counters of intake: points that an SDK counted beyond its limit of attribute sets,
OVERFLOW_POINT = "streams:overflow"
# and points of histograms with explicit bounds, which cannot be used for latency.
EXPLICIT_BOUNDS_POINT = "streams:explicit_bounds"


class Stream(NamedTuple):
    """A stream of points: a digest of its identity, and the interval of this point in microseconds.

    The identity is Resource, scope, metric and attributes. `start_us` is 0 when it is unset.
    """

    suffix: str
    is_cumulative: bool
    start_us: int
    time_us: int


class Histogram(NamedTuple):
    """Counts by base-2 exponential bucket at a scale; bucket b is (g^b, g^(b+1)], g = 2^(2^-scale).

    Values are in the unit of the metric, seconds for durations.
    """

    scale: int
    buckets: tuple[tuple[int, int], ...]

    def coarsened(self) -> "Histogram":
        """Return the histogram at `SCALE`, or unchanged when it is coarser.

        Raises:
            ValueError: it is coarser than `COARSEST_SCALE`.
        """
        if self.scale < COARSEST_SCALE:
            raise ValueError(
                f"scale={self.scale}; send a histogram of scale {COARSEST_SCALE} or finer"
            )
        if self.scale <= SCALE:
            return self
        merged: dict[int, int] = {}
        for bucket, count in self.buckets:
            wider = bucket >> (self.scale - SCALE)
            merged[wider] = merged.get(wider, 0) + count
        return Histogram(SCALE, tuple(sorted(merged.items())))


class PointOwner(NamedTuple):
    """The owner that a point is about, by the assignment id of its Resource.

    `stratum` is that of its evidence by counters. The point's value counts at `places` of the row.
    `counts_unnumbered`: the point counts transitions that their host does not number, so the store
    can find how many of them have no record. `is_witness`: it is another counter of such a host,
    which proves that the host's counters arrive.
    """

    pseudonym: str
    owner_bucket: int
    stratum: Stratum
    places: tuple[int, ...]
    counts_unnumbered: bool = False
    is_witness: bool = False


@dataclass(frozen=True, slots=True)
class PointEvent:
    """A point of a counter or of a histogram; the value of a histogram is its count.

    It counts as volume by stratum and counter, and, with an owner, as evidence by counters.
    `is_conforming` is None for a point that is no record of the contract check. `began_on` is the
    UTC day of its start, None when that is unset. With `is_overflow` its SDK left its attributes
    out; with `is_missed` the evidence of some owner lacks its value. `instance` is a digest of the
    process that sent it. `counts_starts`: it counts starts of prompts, so the store can find how
    many of them no event reports.

    Raises:
        ValueError: the value is negative or beyond 2**53 - 1, or the histogram is too coarse.
    """

    dedupe_key: DedupeKey
    day: date
    hour: int
    stratum: Stratum
    counter: str
    stream: Stream
    value: int
    histogram: Histogram | None = None
    owner: PointOwner | None = None
    is_conforming: bool | None = None
    health: tuple[str, ...] = ()
    began_on: date | None = None
    is_overflow: bool = False
    is_missed: bool = False
    instance: str = ""
    counts_starts: bool = False

    def __post_init__(self) -> None:
        check_count("value", self.value)
        if self.histogram is not None:
            self.histogram.coarsened()

    def packed(self) -> list[object]:
        """Return the event as the store's ingest function reads it."""
        owner = self.owner
        stream = self.stream
        about: list[object] = [self.stratum.name, self.counter]
        if owner is None:
            about += [False, [], 0]
        else:
            about += [owner.stratum.name, owner.places, _kind_of(owner)]
        about.append("" if self.began_on is None else self.began_on.isoformat())
        about.append(int(self.is_overflow) + int(self.is_overflow and self.is_missed))
        about += [self.instance, int(self.counts_starts)]
        histogram = Histogram(SCALE, ()) if self.histogram is None else self.histogram
        stored = histogram.coarsened()
        numbers = [
            *(int(stream.is_cumulative), stream.start_us, stream.time_us, self.value, self.hour),
            -1 if self.is_conforming is None else int(self.is_conforming),
            SCALE - stored.scale,
            *(number for pair in stored.buckets for number in pair),
        ]
        return [
            "m",
            str(self.dedupe_key.digest),
            self.dedupe_key.bucket,
            stream.suffix,
            "" if owner is None else owner.pseudonym,
            0 if owner is None else owner.owner_bucket,
            self.day.isoformat(),
            self.dedupe_key.second,
            about,
            -1,
            numbers,
            self.health,
            0,
        ]


def _kind_of(owner: PointOwner) -> int:
    if owner.counts_unnumbered:
        return 1
    return 2 if owner.is_witness else 0
