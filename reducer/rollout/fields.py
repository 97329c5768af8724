"""Unambiguous bytes for hashing: each field as 4-byte big-endian length + UTF-8 bytes."""

import base64
from hashlib import blake2b

MAX_KEY_BYTES = 64


def length_prefixed(*fields: str) -> bytes:
    """Join fields so that no two different lists give the same bytes."""
    parts: list[bytes] = []
    for field in fields:
        encoded = field.encode()
        parts.append(len(encoded).to_bytes(4, "big"))
        parts.append(encoded)
    return b"".join(parts)


def keyed_80_bits(key: bytes, body: bytes) -> str:
    """Return the 80-bit BLAKE2b (RFC 7693) of `body` under `key`, as 16 base32 characters.

    Raises:
        ValueError: the key is empty or longer than 64 bytes.
    """
    # BLAKE2b takes an empty key for "no key": anybody could then compute what the key protects.
    if not 1 <= len(key) <= MAX_KEY_BYTES:
        raise ValueError(f"a key has 1 to {MAX_KEY_BYTES} bytes, this one has {len(key)}")
    return base32_of_80_bits(blake2b(body, digest_size=10, key=key).digest())


def base32_of_80_bits(digest: bytes) -> str:
    """Return 10 bytes as 16 upper-case RFC 4648 base32 characters, without padding."""
    return base64.b32encode(digest).decode("ascii")
