"""What is counted and bounded while a body is decoded."""

from control_plane.ingest.otlp import ATTRIBUTE_LIMIT, RESOURCE_ATTRIBUTE_LIMIT
from control_plane.ingest.rejections import Refusal, RejectReason
from control_plane.ingest.wire import BadBody, TooLarge

# SDKs send 160.
BUCKET_LIMIT = 1024


class Quota:
    """Counts the items of one body, and what they are wrapped in, against its limit.

    Empty wrappers cost two bytes each: uncounted, one body could hold millions of them.
    """

    __slots__ = ("_items", "_limit", "_wrappers")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items = 0
        self._wrappers = 0

    def take(self, count: int) -> None:
        """Count `count` more items; raises TooLarge when the body holds too many."""
        self._items += count
        if self._items > self._limit:
            raise self._refusal("records or points")

    def wrap(self, count: int) -> None:
        """Count `count` more resources, scopes or metrics; raises TooLarge for too many."""
        self._wrappers += count
        if self._wrappers > self._limit:
            raise self._refusal("resources, scopes and metrics")

    def _refusal(self, what: str) -> TooLarge:
        return TooLarge(
            f"the body holds more than {self._limit} {what}; lower the exporter's batch size"
        )


def check_attribute_count(count: int) -> None:
    """Refuse an item with more attributes than the limit."""
    if count > ATTRIBUTE_LIMIT:
        raise Refusal(RejectReason.TOO_MANY_ATTRIBUTES, f"{count} attributes on one item")


def check_bucket_count(count: int) -> None:
    """Refuse a histogram with more buckets than the limit."""
    if count > BUCKET_LIMIT:
        raise Refusal(
            RejectReason.BAD_HISTOGRAM,
            f"{count} buckets in one histogram, at most {BUCKET_LIMIT} are read",
        )


def check_no_repeat(unique: int, count: int) -> None:
    """Refuse an item that names an attribute twice, since OTLP leaves open which one holds."""
    if unique != count:
        raise Refusal(RejectReason.UNREADABLE, "an attribute key appears twice")


def check_resource_size(count: int) -> None:
    """Refuse a body whose Resource has more attributes than the limit."""
    if count > RESOURCE_ATTRIBUTE_LIMIT:
        raise BadBody(f"a resource has {count} attributes; send at most {RESOURCE_ATTRIBUTE_LIMIT}")
