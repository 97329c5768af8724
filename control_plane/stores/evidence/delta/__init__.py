"""Evidence delta: what one request adds to the evidence, as the store's functions read it."""

__all__ = ["dedupe_keys", "points", "prompt_events", "prompt_parts", "request", "strata"]
