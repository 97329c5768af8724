"""The draw: a deterministic order of a roster, and the owners of it that are treated.

Allotting by rank instead of by a hash threshold never exceeds the requested share; a threshold of
5 % exceeds 5 % in a quarter to a half of all rosters.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from guardwave.reducer.rollout.fields import length_prefixed
from guardwave.reducer.rollout.pseudonym import PSEUDONYM_BYTES, pack, unpack

ALGORITHM = "guardwave-draw-1"
BPS = 10_000


def salt_text(salt: str, epoch: int) -> str:
    """Return the hashed form of a rollout's salt: 32 hexadecimal digits, a dot and the epoch."""
    return f"{salt}.{epoch}"


def position(environment: str, guard: str, salt: str, pseudonym: str) -> int:
    """Return `u`, an unsigned 64-bit integer: the first 8 bytes, big endian, of the SHA-256."""
    digest = sha256(length_prefixed(ALGORITHM, environment, guard, salt, pseudonym)).digest()
    return int.from_bytes(digest[:8], "big")


def treated_count(share_bps: int, owners: int) -> int:
    """Return the number of treated owners: floor(share_bps * owners / 10000).

    Raises:
        ValueError: the share is not within 0 to 10000 basis points.
    """
    if not 0 <= share_bps <= BPS:
        raise ValueError(f"a share is 0 to {BPS} basis points, not {share_bps}")
    return share_bps * owners // BPS


@dataclass(frozen=True, slots=True)
class Roster:
    """The frozen eligible owners of a wave in draw order; the first `treated` are treated."""

    pseudonyms: tuple[str, ...]
    treated: int

    @property
    def digest(self) -> str:
        """SHA-256 over the packed pseudonyms in draw order, hexadecimal."""
        return sha256(self.packed()).hexdigest()

    def packed(self) -> bytes:
        """Return the roster as stored: 10 bytes an owner, in draw order."""
        return b"".join(pack(pseudonym) for pseudonym in self.pseudonyms)

    @classmethod
    def unpacked(cls, packed: bytes, treated: int) -> "Roster":
        """Return the roster of its packed bytes.

        Raises:
            ValueError: the length is not a whole number of owners.
        """
        if len(packed) % PSEUDONYM_BYTES:
            raise ValueError(
                f"a packed roster has {PSEUDONYM_BYTES} bytes an owner; "
                f"{len(packed)} bytes are not a whole number of owners"
            )
        steps = range(0, len(packed), PSEUDONYM_BYTES)
        return cls(tuple(unpack(packed[at : at + PSEUDONYM_BYTES]) for at in steps), treated)


def draw(
    environment: str, guard: str, salt: str, pseudonyms: Iterable[str], *, share_bps: int
) -> Roster:
    """Order the owners by `(u, pseudonym)` and treat the first `treated_count` of them.

    Raises:
        ValueError: a pseudonym occurs twice, or the share is out of range.
    """
    ranked = sorted((position(environment, guard, salt, name), name) for name in pseudonyms)
    ordered = tuple(pseudonym for _, pseudonym in ranked)
    if len(set(ordered)) != len(ordered):
        raise ValueError("a roster names each owner once; one occurs twice")
    return Roster(ordered, treated_count(share_bps, len(ordered)))
