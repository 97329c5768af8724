"""Quotas: the limits on items, wrappers, attributes and buckets while a body is decoded."""

from guardwave.control_plane.ingest.model.otlp_values import (
    ATTRIBUTE_LIMIT,
    RESOURCE_ATTRIBUTE_LIMIT,
)
from guardwave.control_plane.ingest.model.rejections import ItemRejected, RejectReason
from guardwave.control_plane.ingest.wire.body import BadBody, TooLarge

# SDKs send 160.
BUCKET_LIMIT = 1024


class Quota:
    """Counts the items of one body, and the wrappers around them, against its limit.

    An empty wrapper costs two bytes: uncounted, one body could hold millions of them.
    """

    __slots__ = ("_items", "_limit", "_wrappers")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items = 0
        self._wrappers = 0

    def count_items(self, count: int) -> None:
        """Count `count` more items; raises TooLarge when the body holds too many."""
        self._items += count
        if self._items > self._limit:
            raise self._too_large("records or points")

    def count_wrappers(self, count: int) -> None:
        """Count `count` more resources, scopes or metrics; raises TooLarge for too many."""
        self._wrappers += count
        if self._wrappers > self._limit:
            raise self._too_large("resources, scopes and metrics")

    def _too_large(self, what: str) -> TooLarge:
        return TooLarge(
            f"the body holds more than {self._limit} {what}; lower the exporter's batch size"
        )


def check_attribute_count(count: int) -> None:
    """Reject an item with more attributes than the limit."""
    if count > ATTRIBUTE_LIMIT:
        raise ItemRejected(RejectReason.TOO_MANY_ATTRIBUTES, f"{count} attributes on one item")


def check_bucket_count(count: int) -> None:
    """Reject a histogram with more buckets than the limit."""
    if count > BUCKET_LIMIT:
        raise ItemRejected(
            RejectReason.BAD_HISTOGRAM,
            f"{count} buckets in one histogram, at most {BUCKET_LIMIT} are read",
        )


def check_no_repeat(unique: int, count: int) -> None:
    """Reject an item that names an attribute twice: OTLP leaves open which one holds."""
    if unique != count:
        raise ItemRejected(RejectReason.UNREADABLE, "an attribute key appears twice")


def check_resource_size(count: int) -> None:
    """Reject a body whose Resource has more attributes than the limit."""
    if count > RESOURCE_ATTRIBUTE_LIMIT:
        raise BadBody(f"a resource has {count} attributes; send at most {RESOURCE_ATTRIBUTE_LIMIT}")
