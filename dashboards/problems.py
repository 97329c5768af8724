"""Error pages: the message, its numbers and the remedy, in the frame of every page."""

from flask import Response, make_response, render_template, request
from werkzeug.exceptions import MethodNotAllowed, NotFound

_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def harden(response: Response) -> Response:
    """Add the security headers; no cache keeps a page that does not set its own rule."""
    response.headers["Content-Security-Policy"] = _POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers.setdefault("Cache-Control", "no-store")
    return response


_MOST_SHOWN = 120
_PAGES = frozenset({"text/html", "text/*"})


def asks_for_page() -> bool:
    """Whether the client asks for HTML by name, as browsers do; programs send only `*/*`."""
    return any(kind in _PAGES and quality > 0 for kind, quality in request.accept_mimetypes)


def accepts_page_redirect() -> bool:
    """Whether the client may be redirected to a page: all but those that prefer another type.

    People send `*/*` or no `Accept` with curl to see whether a server is there.
    """
    accepted = request.accept_mimetypes
    if not accepted:
        return True
    return accepted.best_match(["text/html", "application/json"]) == "text/html"


def problem_page(status: int, title: str, detail: str) -> Response:
    """Render an error; hardened here because the hook does not run for an unknown address."""
    title, detail = _rephrase(title, detail)
    body = render_template("problem.html", status=status, title=title, detail=detail)
    return harden(make_response(body, status))


def _rephrase(title: str, detail: str) -> tuple[str, str]:
    """Replace the messages of the HTTP layer by guardwave's own."""
    address = request.path[:_MOST_SHOWN]
    if detail == NotFound.description:
        return "Not found", f"No page has the address {address}."
    if detail == MethodNotAllowed.description:
        return (
            "Not possible",
            f"{address} does not accept {request.method}; use the forms on the pages.",
        )
    return title, detail
