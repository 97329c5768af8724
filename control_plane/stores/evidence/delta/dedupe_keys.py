"""Dedupe keys: identity and time of an event, and the range of numbers the store can add."""

from typing import NamedTuple

# The store counts in doubles: a whole number beyond this is not exact there.
MOST = 2**53 - 1

# Dedupe keys are kept by minute of event time, in sets small enough to take 8 bytes for each
# (docs/store.md).
DEDUPE_BUCKET_S = 60


class DedupeKey(NamedTuple):
    """Identity of an event: a 63-bit digest, and its time in seconds since 1970."""

    digest: int
    second: int

    @property
    def bucket(self) -> int:
        """Minute of event time under which the digest is kept."""
        return self.second // DEDUPE_BUCKET_S


def check_count(name: str, value: int, *, most: int = MOST) -> None:
    """Reject a number that the store cannot add exactly.

    Raises:
        ValueError: the value is negative or beyond `most`.
    """
    if not 0 <= value <= most:
        raise ValueError(f"{name}={value} cannot be added; send a whole number from 0 to {most}")
