"""Intake: OTLP bytes in, validated records out, one atomic write."""
