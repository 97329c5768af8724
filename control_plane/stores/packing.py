"""MessagePack as the store's functions read and write it."""

import msgpack  # type: ignore[import-untyped]  # the package ships no types


def pack(value: object) -> bytes:
    """Return lists, dicts, texts, whole numbers and booleans as MessagePack.

    Without the bin type, which the store's reader does not know: a text and its bytes are one.
    """
    return bytes(msgpack.packb(value, use_bin_type=False))


def unpack(packed: bytes) -> object:
    """Return what a function of the store packed. An empty Lua table comes back as a list."""
    value: object = msgpack.unpackb(packed)
    return value
