"""Static files under addresses that name their content, so that browsers may keep them for good."""

import hashlib
from pathlib import Path

from flask import Response, send_from_directory, url_for

from control_plane.errors import NotFound

STATIC = Path(__file__).parent / "static"
_YEAR_SECONDS = 31_536_000


def _digests() -> dict[str, str]:
    return {
        path.relative_to(STATIC).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in sorted(STATIC.rglob("*"))
        if path.is_file()
    }


_DIGESTS = _digests()


def asset(name: str) -> str:
    """Return the address of a static file; KeyError for one that is not shipped."""
    return url_for("pages.static_file", digest=_DIGESTS[name], name=name)


def static_file(digest: str, name: str) -> Response:
    """Answer a static file under its present digest, immutable."""
    if _DIGESTS.get(name) != digest:
        raise NotFound(f"no static file {name} with digest {digest}; reload the page")
    response = send_from_directory(STATIC, name, max_age=_YEAR_SECONDS)
    response.cache_control.public = True
    response.cache_control.immutable = True
    return response
