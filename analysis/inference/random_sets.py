"""Random sets: owners drawn as the smaller cohort was, and sums of columns over each set."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from guardwave.analysis.frames import Flags, Floats

Labels: TypeAlias = npt.NDArray[np.unsignedinteger]

# Labels per chunk: 12 bytes each while they are summed, so that a chunk stays near 50 MB.
CHUNK_LABELS = 4_000_000
# Sums of a chunk should stay in the processor's cache: every owner adds to a row of them.
CHUNK_ROWS = 16_384
# Labels are kept for the next sum up to this size, and drawn again beyond.
KEPT_BYTES = 300_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """The observed set, then `count` random ones of its size. The same seed gives the same sets.

    One shuffle of the owners, cut into disjoint blocks, gives floor(owners / size) sets, which is
    cheaper than one shuffle for each set. A larger count only adds sets.
    """

    is_member: Flags
    seed: int
    count: int
    cached: list[Labels] = field(default_factory=list)

    @property
    def owners(self) -> int:
        """Number of owners."""
        return len(self.is_member)

    @property
    def size(self) -> int:
        """Owners in each set."""
        return int(self.is_member.sum())

    @property
    def blocks(self) -> int:
        """Sets in one shuffle."""
        return self.owners // self.size

    @property
    def shuffles(self) -> int:
        """Shuffles behind all random sets."""
        return -(-self.count // self.blocks)

    def labels(self) -> Iterator[Labels]:
        """Yield owners x shuffles: the block of each owner, `blocks` for those left over."""
        if self.cached:
            yield from self.cached
            return
        kind = np.min_scalar_type(self.blocks)
        order = np.repeat(np.arange(self.blocks, dtype=kind), self.size)
        rest = np.full(self.owners - len(order), self.blocks, dtype=kind)
        order = np.concatenate([order, rest])
        at_once = max(1, min(CHUNK_LABELS // self.owners, CHUNK_ROWS // (self.blocks + 1)))
        is_kept = self.shuffles * self.owners * kind.itemsize <= KEPT_BYTES
        # The seed is an argument: the same evidence gets the same sets wherever it is evaluated.
        source = np.random.default_rng(self.seed)
        chunks = []
        for first in range(0, self.shuffles, at_once):
            shuffles = min(at_once, self.shuffles - first)
            chunk = np.stack([source.permutation(order) for _ in range(shuffles)], axis=1)
            if is_kept:
                chunks.append(chunk)
            yield chunk
        # Labels are kept only when all were made: a caller may stop half-way.
        self.cached.extend(chunks)


def draw_sets(is_member: Flags, *, seed: int, count: int) -> Sets:
    """Return the set of all members and `count` random ones of its size."""
    return Sets(is_member, seed, count)


def sums_over(sets: Sets, columns: Floats) -> Floats:
    """Sum `columns` (owners x k) over each set: one row per set, the observed one first.

    Each sum adds its owners in their order, so its bits depend neither on the chunks nor on the
    columns beside it.
    """
    observed = np.where(sets.is_member, 0, 1).astype(np.uint8)[:, np.newaxis]
    rows = [_sums(observed, 1, columns, np.ones(sets.owners))]
    ones = np.ones(0)
    for chunk in sets.labels():
        if len(ones) != chunk.size:
            ones = np.ones(chunk.size)
        rows.append(_sums(chunk, sets.blocks, columns, ones))
    return np.concatenate(rows)[: 1 + sets.count]


def _sums(labels: Labels, blocks: int, columns: Floats, ones: Floats) -> Floats:
    owners, shuffles = labels.shape
    rows = shuffles * (blocks + 1)
    # By column: each owner's values are read once and added to the owner's set in each shuffle.
    starts = np.arange(0, rows, blocks + 1, dtype=np.int32)
    places = np.add(labels, starts, dtype=np.int32).ravel()
    ends = np.arange(0, owners * shuffles + 1, shuffles, dtype=np.int32)
    members = sparse.csc_array((ones, places, ends), shape=(rows, owners))
    sums = np.asarray(members @ columns).reshape(shuffles, blocks + 1, columns.shape[1])
    return sums[:, :blocks].reshape(shuffles * blocks, columns.shape[1])
