"""Unambiguous bytes for hashing: each field as 4-byte big-endian length + UTF-8 bytes."""

import base64


def length_prefixed(*fields: str) -> bytes:
    """Join fields so that no two different lists give the same bytes."""
    parts: list[bytes] = []
    for field in fields:
        encoded = field.encode()
        parts.append(len(encoded).to_bytes(4, "big"))
        parts.append(encoded)
    return b"".join(parts)


def base32_of_80_bits(digest: bytes) -> str:
    """Return 10 bytes as 16 upper-case RFC 4648 base32 characters, without padding."""
    return base64.b32encode(digest).decode("ascii")
