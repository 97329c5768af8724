"""Evidence of a request: what records add, verified by their assignment ids."""

from guardwave.control_plane.ingest.evidence.builder import EvidenceBuilder
from guardwave.control_plane.ingest.evidence.delta import EvidenceDelta
from guardwave.control_plane.ingest.evidence.prompt_deltas import MILLISECOND_NS, duration_bucket
from guardwave.control_plane.ingest.evidence.rejected_items import (
    content_leak,
    group_rejections,
    leak_of_event,
    leak_of_point,
    leak_of_record,
    record_identity,
)

__all__ = [
    "MILLISECOND_NS",
    "EvidenceBuilder",
    "EvidenceDelta",
    "content_leak",
    "duration_bucket",
    "group_rejections",
    "leak_of_event",
    "leak_of_point",
    "leak_of_record",
    "record_identity",
]
