"""What logs may show of a request: owner ids in paths are masked."""

import re

# In both places the owner id is the last segment; whatever follows it is masked with it.
_AFTER_OWNER = re.compile(r"(/(?:owners|assignments)/)[^?\s]+")


def masked_path(path: str) -> str:
    """Return the path with the owner id in it, if there is one, replaced by `***`."""
    return _AFTER_OWNER.sub(r"\1***", path)
