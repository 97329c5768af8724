"""Neutral model: decoded OTLP values, records of the domain, identities and rejections."""

__all__ = ["identity", "otlp_values", "record_templates", "records", "rejections"]
