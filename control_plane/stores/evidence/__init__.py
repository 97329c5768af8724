"""Evidence: what requests add, owner-days, sealed days, intake health, suspects and retention."""

__all__ = [
    "delta",
    "imports",
    "intake_health",
    "owner_days",
    "pages",
    "retention",
    "sealed_days",
    "shards",
    "store",
    "suspects",
]
