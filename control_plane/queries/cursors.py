"""Collections in parts: small ones by key, numbered ones newest first."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def part(
    items: Sequence[Item], key: Callable[[Item], str], *, after: str | None, limit: int
) -> tuple[tuple[Item, ...], str | None]:
    """Return up to `limit` items behind the one whose key is `after`, and the next cursor.

    `items` are in a fixed order. A cursor whose item is gone starts behind every smaller key.
    """
    start = 0
    if after is not None:
        keys = [key(item) for item in items]
        is_there = after in keys
        start = keys.index(after) + 1 if is_there else sum(1 for each in keys if each <= after)
    shown = tuple(items[start : start + limit])
    is_last = start + limit >= len(items)
    return shown, None if is_last or not shown else key(shown[-1])


def numbers(newest: int, *, before: int | None, limit: int) -> tuple[range, str | None]:
    """Return up to `limit` falling numbers from `newest`, or from below `before`, and a cursor."""
    start = newest if before is None else min(newest, before - 1)
    end = max(0, start - limit)
    return range(start, end, -1), str(end + 1) if end > 0 else None
