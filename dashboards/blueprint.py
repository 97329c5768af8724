"""The blueprint of all pages: its templates, its hooks, and what every template may use."""

from types import ModuleType

from flask import Blueprint, Response, g, make_response, redirect, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from dashboards import formatting, words
from dashboards.addresses import page_address, page_path
from dashboards.assets import asset, static_file
from dashboards.headers import harden
from dashboards.same_origin import refuse_foreign_forms
from dashboards.sessions import ask_for_sign_in, visible
from dashboards.theme import COOKIE, COOKIE_SECONDS, Theme, chosen_theme, own_path, parse_theme
from dashboards.ways_on import frame_now, ways_on

blueprint = Blueprint("pages", __name__, template_folder="templates")
blueprint.before_request(refuse_foreign_forms)
blueprint.before_request(ask_for_sign_in)
blueprint.after_request(harden)
blueprint.add_url_rule("/assets/<digest>/<path:name>", view_func=static_file)


@blueprint.app_context_processor
def frame_values() -> dict[str, object]:
    """Give every template the formatting, the words and who is signed in."""
    modules: dict[str, ModuleType] = {"fmt": formatting, "words": words}
    return {
        **modules,
        "asset": asset,
        "frame_now": frame_now,
        "page_path": page_path,
        "page_address": page_address,
        "visible": visible,
        "ways_on": ways_on,
        "theme": chosen_theme(),
        "themes": tuple(Theme),
        "signed_in": g.get("identity"),
    }


@blueprint.post("/theme")
def set_theme() -> BaseResponse:
    """Remember how a person wants the pages to look, and go back to where they were."""
    theme = parse_theme(request.form.get("theme"))
    back = own_path(request.form.get("next")) or url_for("pages.overview")
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
