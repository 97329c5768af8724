"""Logged paths: a request's path with its owner id masked."""

import re

# The owner id is the last segment in both; anything behind it is masked too.
_AFTER_OWNER = re.compile(r"(/(?:owners|assignments)/)[^?\s]+")


def masked_path(path: str) -> str:
    """Return the path with `***` for its owner id, if it has one."""
    return _AFTER_OWNER.sub(r"\1***", path)
