"""Fast path: records that match a known layout are sliced at their variable fields, not parsed."""

from guardwave.control_plane.ingest.fast_path.layout_cache import (
    MINUTE_NS,
    LayoutCache,
    LayoutMatcher,
)

__all__ = [
    "MINUTE_NS",
    "LayoutCache",
    "LayoutMatcher",
]
