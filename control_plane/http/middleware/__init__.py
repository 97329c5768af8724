"""Middleware: the checks before a view, and the answers to a request that fails."""

from guardwave.control_plane.http.middleware import problems, requests
from guardwave.control_plane.http.middleware.access_log import masked_path
from guardwave.control_plane.http.middleware.idempotency import HEADER, idempotent
from guardwave.control_plane.http.middleware.problems import MEDIA_TYPE
from guardwave.control_plane.http.middleware.requests import (
    NDJSON,
    check_caller,
    context,
    keep_private,
)
from guardwave.control_plane.http.middleware.validation import reject_invalid

__all__ = [
    "HEADER",
    "MEDIA_TYPE",
    "NDJSON",
    "check_caller",
    "context",
    "idempotent",
    "keep_private",
    "masked_path",
    "problems",
    "reject_invalid",
    "requests",
]
