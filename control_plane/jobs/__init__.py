"""Worker jobs: days sealed, gates evaluated, promotions carried out, lost prompts closed."""

__all__ = ["bundles", "evaluate", "lease", "replay", "worker"]
