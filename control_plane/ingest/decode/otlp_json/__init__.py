"""OTLP/JSON decoder: bodies to neutral values, by proto3 JSON with OTLP's own rules."""

from guardwave.control_plane.ingest.decode.otlp_json.bodies import (
    decode_logs,
    decode_metrics,
    decode_spans,
)

__all__ = [
    "decode_logs",
    "decode_metrics",
    "decode_spans",
]
