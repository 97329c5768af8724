"""Random sets of owners as large as the smaller cohort, and sums of columns over each of them."""

from collections.abc import Iterable, Iterator

import numpy as np
from scipy import sparse

from analysis.frames import Flags, Floats

# One row per set, one column per owner, 1.0 for a member: sums over all sets are one product.
Sets = sparse.csr_array
# Members per chunk: 12 bytes each, so that a chunk stays near 24 MB whatever the roster.
CHUNK_MEMBERS = 2_000_000


def draw_sets(is_member: Flags, *, seed: int, count: int) -> Iterator[Sets]:
    """Yield the observed set, then `count` random sets of its size, in chunks of whole sets.

    The owners are shuffled once per floor(owners / size) sets and cut into disjoint blocks,
    which costs a fraction of one shuffle per set. The same flags and seed give the same sets,
    and a larger count only adds to them.
    """
    owners, size = len(is_member), int(is_member.sum())
    yield _as_rows(np.flatnonzero(is_member)[np.newaxis, :], owners)
    blocks = owners // size
    shuffles_per_chunk = max(1, CHUNK_MEMBERS // (blocks * size))
    # The seed is an argument: the same evidence meets the same sets wherever it is evaluated.
    source = np.random.default_rng(seed)
    remaining = count
    while remaining > 0:
        shuffles = min(shuffles_per_chunk, -(-remaining // blocks))
        orders = np.stack([source.permutation(owners)[: blocks * size] for _ in range(shuffles)])
        members = orders.reshape(shuffles * blocks, size)[:remaining]
        remaining -= len(members)
        yield _as_rows(members, owners)


def sums_over(sets: Iterable[Sets], columns: Floats) -> Floats:
    """Sum `columns` (owners x k) over each set: one row per set, the observed one first."""
    return np.concatenate([chunk @ columns for chunk in sets])


def _as_rows(members: np.ndarray, owners: int) -> Sets:
    rows, size = members.shape
    starts = np.arange(0, rows * size + 1, size, dtype=np.int32)
    indices = members.astype(np.int32).ravel()
    return sparse.csr_array((np.ones(rows * size), indices, starts), shape=(rows, owners))
