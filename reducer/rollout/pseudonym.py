"""Pseudonyms: the keyed digests that replace owner ids."""

import re

from guardwave.reducer.rollout.fields import base32_of_80_bits, bytes_of_base32, keyed_80_bits

PSEUDONYM_BYTES = 10
PSEUDONYM_SHAPE = re.compile(r"[A-Z2-7]{16}")
MAX_OWNER_BYTES = 256


def check_owner(owner: str) -> str:
    """Return the owner id unchanged when it is 1 to 256 printable bytes (UTF-8).

    Raises:
        ValueError: the id is empty, too long or not printable; the message never repeats it.
    """
    size = len(owner.encode("utf-8", "surrogatepass"))
    if not 1 <= size <= MAX_OWNER_BYTES:
        raise ValueError(f"an owner id has 1 to {MAX_OWNER_BYTES} bytes, this one has {size}")
    if not owner.isprintable():
        raise ValueError("an owner id has printable characters only; this one has a control one")
    return owner


def pseudonym_of(key: bytes, owner: str) -> str:
    """Return the owner's pseudonym: 80-bit BLAKE2b keyed per environment, 16 base32 characters.

    Without the key nobody can find the owner by trying ids, or join two environments on it.

    Raises:
        ValueError: the owner id is empty, too long or not printable, or the key is empty.
    """
    return keyed_80_bits(key, check_owner(owner).encode())


def pack(pseudonym: str) -> bytes:
    """Return the pseudonym's 10 bytes, as rosters are stored.

    Raises:
        ValueError: the text is not 16 base32 characters.
    """
    # A text of another length would not give 10 bytes, and the roster would be misread.
    if PSEUDONYM_SHAPE.fullmatch(pseudonym) is None:
        raise ValueError("a pseudonym has 16 characters of A-Z and 2-7; this one does not")
    return bytes_of_base32(pseudonym)


def unpack(packed: bytes) -> str:
    """Return the pseudonym of its 10 packed bytes.

    Raises:
        ValueError: there are not 10 bytes.
    """
    if len(packed) != PSEUDONYM_BYTES:
        raise ValueError(f"a packed pseudonym has {PSEUDONYM_BYTES} bytes, not {len(packed)}")
    return base32_of_80_bits(packed)
