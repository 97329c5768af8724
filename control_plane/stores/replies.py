"""The replies of a connection that does not decode, as the types they really have."""


def octets(reply: object) -> bytes:
    """Return a reply that is a string of the store.

    Raises:
        TypeError: it is none; the connection decodes responses, or the key has another type.
    """
    if not isinstance(reply, bytes):
        raise TypeError(f"the store answered {type(reply).__name__} where bytes were due")
    return reply


def text(reply: object) -> str:
    """Return a reply that is UTF-8 text; errors as for `octets`."""
    return octets(reply).decode()


def whole(reply: object) -> int:
    """Return a whole number, which the store sends as such or as a string; nil is 0."""
    if reply is None:
        return 0
    if isinstance(reply, float) and reply.is_integer():
        # redis-py turns the scores of sorted sets into floats
        return int(reply)
    return reply if isinstance(reply, int) else int(octets(reply))


def pair(reply: object) -> tuple[object, object]:
    """Return a reply of two parts.

    Raises:
        TypeError: it is not a list of two.
    """
    first, second = parts(reply, 2)
    return first, second


def parts(reply: object, count: int) -> tuple[object, ...]:
    """Return a reply of so many parts.

    Raises:
        TypeError: it is not a list of that length.
    """
    if not isinstance(reply, list | tuple) or len(reply) != count:
        raise TypeError(
            f"the store answered {type(reply).__name__} where a list of {count} was due"
        )
    return tuple(reply)
