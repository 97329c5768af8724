"""Telemetry contract: what intake accepts of an item, and how its attributes are read."""

from guardwave.control_plane.ingest.contract import fields, limits
from guardwave.control_plane.ingest.contract.allow_list import SiftedAttributes, sift_attributes
from guardwave.control_plane.ingest.contract.events import EVENTS, EventType, IncomingEvent
from guardwave.control_plane.ingest.contract.fields import LONGEST_KEPT, quoted
from guardwave.control_plane.ingest.contract.limits import (
    DAY_NS,
    EARLY_SCOPE_VERSION,
    HOUR_NS,
    NEWEST_NS,
    OLDEST_NS,
    Clock,
    accepted_time,
    sender_clock,
    utc_day,
    utc_hour,
)
from guardwave.control_plane.ingest.contract.origin import read_origin
from guardwave.control_plane.ingest.contract.points import (
    ALLOWED_ON_POINTS,
    PointContext,
    accept_point,
)

__all__ = [
    "ALLOWED_ON_POINTS",
    "DAY_NS",
    "EARLY_SCOPE_VERSION",
    "EVENTS",
    "HOUR_NS",
    "LONGEST_KEPT",
    "NEWEST_NS",
    "OLDEST_NS",
    "Clock",
    "EventType",
    "IncomingEvent",
    "PointContext",
    "SiftedAttributes",
    "accept_point",
    "accepted_time",
    "fields",
    "limits",
    "quoted",
    "read_origin",
    "sender_clock",
    "sift_attributes",
    "utc_day",
    "utc_hour",
]
