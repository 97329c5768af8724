"""What is counted and bounded while a body is decoded."""

from control_plane.ingest.otlp import ATTRIBUTE_LIMIT
from control_plane.ingest.rejections import Refusal, RejectReason
from control_plane.ingest.wire import TooLarge


class Quota:
    """Counts the items of one body against its limit."""

    __slots__ = ("_left", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = limit

    def take(self, count: int) -> None:
        """Count `count` more items; raises TooLarge when the body holds too many."""
        self._left -= count
        if self._left < 0:
            raise TooLarge(
                f"the body holds more than {self._limit} records or points; "
                "lower the exporter's batch size"
            )


def check_attribute_count(count: int) -> None:
    """Refuse an item with more attributes than the limit."""
    if count > ATTRIBUTE_LIMIT:
        raise Refusal(RejectReason.TOO_MANY_ATTRIBUTES, f"{count} attributes on one item")


def check_no_repeat(unique: int, count: int) -> None:
    """Refuse an item that names an attribute twice, since OTLP leaves open which one holds."""
    if unique != count:
        raise Refusal(RejectReason.UNREADABLE, "an attribute key appears twice")
