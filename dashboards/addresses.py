"""Page addresses: the page a request belongs to, also when its form was refused."""

from collections.abc import Mapping

from flask import current_app, request, url_for

OVERVIEW = "pages.overview"

# A form's address only answers POST, so reloading it or coming back to it would find no page.
_PAGE_OF_FORM: Mapping[str, str] = {
    "pages.acknowledge": "pages.rollback",
    "pages.evaluate": "pages.guard",
    "pages.promote": "pages.gate",
    "pages.roll_back": "pages.rollback",
    "pages.set_cohort": "pages.guard",
    "pages.sign_in": "pages.sign_in_form",
}


def page_path() -> str:
    """Return the path of the page that this request belongs to, or else of the overview."""
    endpoint = request.endpoint or OVERVIEW
    if request.method not in {"GET", "HEAD"}:
        endpoint = _PAGE_OF_FORM.get(endpoint, OVERVIEW)
    if request.routing_exception is not None:
        endpoint = OVERVIEW
    rule = next(current_app.url_map.iter_rules(endpoint))
    arguments = request.view_args or {}
    kept = {name: arguments[name] for name in rule.arguments if name in arguments}
    return url_for(endpoint, **kept)


def page_address() -> str:
    """Return the page's path, with its query string when this request shows the page."""
    if request.method == "GET" and request.routing_exception is None:
        return request.full_path.rstrip("?")
    return page_path()
