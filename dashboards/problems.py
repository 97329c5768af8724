"""Errors as pages of the same frame: what happened, with which numbers, and what to do."""

from flask import Response, make_response, render_template, request
from werkzeug.exceptions import MethodNotAllowed, NotFound

from dashboards.headers import harden

_MOST_SHOWN = 120
_PAGES = frozenset({"text/html", "text/*"})


def asks_for_page() -> bool:
    """Whether the client names pages, as browsers do; `*/*` alone is what programs send."""
    return any(kind in _PAGES and quality > 0 for kind, quality in request.accept_mimetypes)


def may_be_sent_to_a_page() -> bool:
    """Whether a redirection to a page would do: to all but those who name something else, as JSON.

    `*/*` and no `Accept` are what people send with curl to see whether a server is there.
    """
    accepted = request.accept_mimetypes
    if not accepted:
        return True
    return accepted.best_match(["text/html", "application/json"]) == "text/html"


def problem_page(status: int, title: str, detail: str) -> Response:
    """Render an error, hardened here because addresses that no page answers need it too."""
    title, detail = _own_words(title, detail)
    body = render_template("problem.html", status=status, title=title, detail=detail)
    return harden(make_response(body, status))


def _own_words(title: str, detail: str) -> tuple[str, str]:
    """Say in guardwave's words what the HTTP layer says in its own."""
    address = request.path[:_MOST_SHOWN]
    if detail == NotFound.description:
        return "Not found", f"No page has the address {address}."
    if detail == MethodNotAllowed.description:
        return "Not possible", f"{address} does not take {request.method}; use the pages' forms."
    return title, detail
