"""Errors as pages of the same frame: what happened, with which numbers, and what to do."""

from flask import Response, make_response, render_template, request
from werkzeug.exceptions import HTTPException

from control_plane.errors import GuardwaveError
from dashboards.headers import harden


def problem_page(status: int, title: str, detail: str) -> Response:
    """Render an error, hardened here because addresses that no page answers need it too."""
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
    match error.code:
        case 404:
            title, detail = "Not found", f"No page has the address {request.path}."
        case 405:
            title = "Not possible"
            detail = f"{request.path} does not take {request.method}; use the forms of the pages."
        case _:
            title, detail = error.name, error.description or ""
    return problem_page(error.code or 500, title, detail)
