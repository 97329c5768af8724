"""The blueprint of all pages: its templates, its hooks and the values every template has."""

import hashlib
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

from flask import (
    Blueprint,
    Response,
    g,
    make_response,
    redirect,
    request,
    send_from_directory,
    url_for,
)
from werkzeug.wrappers import Response as BaseResponse

from guardwave.control_plane.core.errors import Forbidden, NotFound
from guardwave.dashboards import formatting, labels
from guardwave.dashboards.addresses import page_address, page_path
from guardwave.dashboards.error_links import current_frame, error_links
from guardwave.dashboards.problems import harden
from guardwave.dashboards.sessions import ask_for_sign_in, visible_environments
from guardwave.dashboards.theme import (
    COOKIE,
    COOKIE_SECONDS,
    Theme,
    chosen_theme,
    local_path,
    parse_theme,
)

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
    """Answer a static file under its current digest, as immutable."""
    if _DIGESTS.get(name) != digest:
        raise NotFound(f"no static file {name} with digest {digest}; reload the page")
    response = send_from_directory(STATIC, name, max_age=_YEAR_SECONDS)
    response.cache_control.public = True
    response.cache_control.immutable = True
    return response


SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# "none" means a person at the address bar; no page can produce it.
_SAME_SITE = frozenset({"same-origin", "none"})


def refuse_foreign_forms() -> None:
    """Raise Forbidden for an unsafe method that does not come from a page of this server."""
    if request.method in SAFE_METHODS:
        return
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    if site is not None:
        is_ours = site in _SAME_SITE
    else:
        is_ours = origin is not None and urlsplit(origin).netloc == request.host
    if not is_ours:
        evidence = f"Sec-Fetch-Site {site}" if site is not None else f"Origin {origin or 'missing'}"
        raise Forbidden(
            f"this form was not sent from a page of {request.host} ({evidence}); open the page "
            "on this server and send it again, or use the API with a bearer token"
        )


blueprint = Blueprint("pages", __name__, template_folder="templates")
blueprint.before_request(refuse_foreign_forms)
blueprint.before_request(ask_for_sign_in)
blueprint.after_request(harden)
blueprint.add_url_rule("/assets/<digest>/<path:name>", view_func=static_file)


@blueprint.app_context_processor
def frame_values() -> dict[str, object]:
    """Give every template the formatting, the labels and the identity that is signed in."""
    modules: dict[str, ModuleType] = {"fmt": formatting, "labels": labels}
    return {
        **modules,
        "asset": asset,
        "current_frame": current_frame,
        "page_path": page_path,
        "page_address": page_address,
        "visible_environments": visible_environments,
        "error_links": error_links,
        "theme": chosen_theme(),
        "themes": tuple(Theme),
        "identity": g.get("identity"),
    }


@blueprint.post("/theme")
def set_theme() -> BaseResponse:
    """Remember the theme that a person chose, and go back to the page they were on."""
    theme = parse_theme(request.form.get("theme"))
    back = local_path(request.form.get("next")) or url_for("pages.overview")
    response: Response = make_response(redirect(back, code=303))
    if theme is not None:
        response.set_cookie(
            COOKIE,
            theme.value,
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="Lax",
            secure=request.is_secure,
        )
    return response
