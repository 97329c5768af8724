"""What makes an event the same event again, and what the store can count exactly."""

from typing import NamedTuple

# The store counts in doubles: a whole number beyond this is not exact there.
MOST = 2**53 - 1

# Seen identities are kept by minute of event time, in sets small enough to take 8 bytes for each
# (docs/store.md).
SEEN_BUCKET_S = 60


class Seen(NamedTuple):
    """What makes an event the same event: a 63-bit digest, and its time in seconds since 1970."""

    digest: int
    second: int

    @property
    def bucket(self) -> int:
        """Which minute of event time the digest is remembered with."""
        return self.second // SEEN_BUCKET_S


def check_count(name: str, value: int, *, most: int = MOST) -> None:
    """Refuse a number that the store cannot add.

    Raises:
        ValueError: the value is negative or beyond `most`.
    """
    if not 0 <= value <= most:
        raise ValueError(f"{name}={value} cannot be added; send a whole number from 0 to {most}")
