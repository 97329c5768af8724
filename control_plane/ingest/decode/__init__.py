"""Decoders: OTLP bodies to neutral values, one package for each encoding."""

from guardwave.control_plane.ingest.decode import otlp_json, protobuf

__all__ = ["otlp_json", "protobuf"]
