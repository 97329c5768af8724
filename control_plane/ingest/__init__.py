"""Intake: OTLP bytes in, validated records out, one atomic write."""

__all__ = ["door", "grpc_door", "intake", "model"]
