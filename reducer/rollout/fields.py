"""Hash fields: unambiguous bytes, each field as 4-byte big-endian length and UTF-8 bytes."""

import base64
from hashlib import blake2b

MAX_KEY_BYTES = 64
# From the digits of RFC 4648 to the digits that `int` reads.
_DIGITS = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789abcdefghijklmnopqrstuv")


def length_prefixed(*fields: str) -> bytes:
    """Join fields so that no two different lists give the same bytes."""
    parts: list[bytes] = []
    for field in fields:
        encoded = field.encode()
        parts.append(len(encoded).to_bytes(4, "big"))
        parts.append(encoded)
    return b"".join(parts)


def keyed_80_bits(key: bytes, body: bytes) -> str:
    """Return the keyed digest of `body` as 16 base32 characters; raises as `keyed_digest`."""
    return base32_of_80_bits(keyed_digest(key, body))


def keyed_digest(key: bytes, body: bytes) -> bytes:
    """Return the 10 bytes of the 80-bit BLAKE2b (RFC 7693) of `body` under `key`.

    Raises:
        ValueError: the key is empty or longer than 64 bytes.
    """
    # BLAKE2b treats an empty key as "no key": anybody could then compute the digest.
    if not 1 <= len(key) <= MAX_KEY_BYTES:
        raise ValueError(f"a key has 1 to {MAX_KEY_BYTES} bytes, this one has {len(key)}")
    return blake2b(body, digest_size=10, key=key).digest()


def base32_of_80_bits(digest: bytes) -> str:
    """Return 10 bytes as 16 upper-case RFC 4648 base32 characters, without padding."""
    return base64.b32encode(digest).decode("ascii")


def bytes_of_base32(text: str) -> bytes:
    """Return the 10 bytes of 16 characters of A-Z and 2-7, which the caller has checked."""
    return int(text.encode("ascii").translate(_DIGITS), 32).to_bytes(10, "big")
