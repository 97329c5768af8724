"""OTLP/protobuf decoder: bodies to neutral values; a slice that repeats is decoded once."""

from guardwave.control_plane.ingest.decode.protobuf.bodies import (
    decode_logs,
    decode_metrics,
    decode_spans,
    log_item,
)

__all__ = [
    "decode_logs",
    "decode_metrics",
    "decode_spans",
    "log_item",
]
