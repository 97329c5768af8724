"""Errors as pages of the same frame: what happened, with which numbers, and what to do."""

from flask import Response, make_response, render_template, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from control_plane.errors import GuardwaveError
from dashboards.headers import harden

_MOST_SHOWN = 120


def problem_page(status: int, title: str, detail: str) -> Response:
    """Render an error, hardened here because addresses that no page answers need it too."""
    title, detail = _own_words(title, detail)
    body = render_template("problem.html", status=status, title=title, detail=detail)
    return harden(make_response(body, status))


def guardwave_problem(error: GuardwaveError) -> Response:
    """Render an error that guardwave raised on purpose."""
    response = problem_page(error.status, error.title, str(error))
    wait = error.extras.get("retry_after_s")
    if isinstance(wait, int):
        response.headers["Retry-After"] = str(wait)
    return response


def http_problem(error: HTTPException) -> Response:
    """Render an error of the HTTP layer, such as a method that a page does not know."""
    return problem_page(error.code or 500, error.name, error.description or "")


def _own_words(title: str, detail: str) -> tuple[str, str]:
    """Say in guardwave's words what the HTTP layer says in its own."""
    address = request.path[:_MOST_SHOWN]
    if detail == NotFound.description:
        return "Not found", f"No page has the address {address}."
    if detail == MethodNotAllowed.description:
        return "Not possible", f"{address} does not take {request.method}; use the pages' forms."
    return title, detail
