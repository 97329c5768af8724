"""Refuse forms that another site submits with a signed-in person's cookie.

Browsers state where a request comes from: `Sec-Fetch-Site` (Fetch Metadata) in all current ones,
`Origin` (RFC 6454) on every POST in older ones. A request with neither does not come from a
browser's form, and programs have the API and its bearer tokens.
"""

from urllib.parse import urlsplit

from flask import request

from control_plane.errors import Forbidden

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# "none" is the person at the address bar; no page can produce it.
_OWN_SITES = frozenset({"same-origin", "none"})


def refuse_foreign_forms() -> None:
    """Raise Forbidden for an unsafe method that does not come from a page of this server."""
    if request.method in SAFE_METHODS:
        return
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    if site is not None:
        is_ours = site in _OWN_SITES
    else:
        is_ours = origin is not None and urlsplit(origin).netloc == request.host
    if not is_ours:
        said = f"Sec-Fetch-Site {site}" if site is not None else f"Origin {origin or 'missing'}"
        raise Forbidden(
            f"this form was not sent from a page of {request.host} ({said}); open the page here "
            "and send it again, or use the API with a bearer token"
        )
