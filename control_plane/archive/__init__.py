"""Archive: an environment's evidence as a file, exported and imported as NDJSON or Parquet."""

__all__ = ["export", "imports", "lines", "parquet"]
