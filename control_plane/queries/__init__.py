"""Queries: read models, one query for each page or answer."""

__all__ = [
    "audit",
    "cards",
    "conditions",
    "decision_models",
    "evaluation_model",
    "evidence",
    "gates",
    "intake_health",
    "overview",
    "owners",
    "page_models",
    "rollbacks",
    "tokens",
    "violations",
    "volume",
]
