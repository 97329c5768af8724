"""Demo: a simulated fleet on the real SDK, its imported history, and a fast clock."""

__all__ = ["bootstrap", "files", "fleet", "misbehave", "story"]
