"""Application factory: every Flask route, wired to one context."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import orjson
from flask.json.provider import JSONProvider
from flask_openapi.openapi import OpenAPI

from guardwave import __version__
from guardwave.control_plane import data_plane
from guardwave.control_plane.http.api import assignments, health, metrics
from guardwave.control_plane.http.api.otlp import otlp_blueprint
from guardwave.control_plane.http.blueprint import api_blueprint
from guardwave.control_plane.http.middleware import problems, reject_invalid, requests
from guardwave.control_plane.http.schema import SECURITY_SCHEME, Problem
from guardwave.control_plane.rollouts.context import Context
from guardwave.dashboards import asks_for_page, problem_page
from guardwave.dashboards import blueprint as pages

OPENAPI_VERSION: Final = "3.1.0"
NONE: Mapping[str, object] = MappingProxyType({})


class OrjsonProvider(JSONProvider):
    """JSON by orjson: strict RFC 8259, no NaN, no lone surrogates."""

    def dumps(self, obj: object, **_options: object) -> str:
        """Return the object as JSON; orjson has no use for the options."""
        return orjson.dumps(obj).decode()

    def loads(self, s: str | bytes, **_options: object) -> object:
        """Return the parsed JSON."""
        return orjson.loads(s)


def create_app(
    context: Context,
    *,
    secure_cookies: bool = True,
    otlp_prefix: str = "",
    extensions: Mapping[str, object] = NONE,
) -> OpenAPI:
    """Return the app over one context; `wsgi` adds its doors as `extensions`.

    The session cookie is `Secure` unless the server speaks plain http on a loopback address.
    """
    app = OpenAPI(
        "guardwave",
        static_folder=None,
        info={"title": "guardwave", "version": __version__},
        security_schemes={SECURITY_SCHEME: {"type": "http", "scheme": "bearer"}},
        validation_error_status=400,
        validation_error_model=Problem,
        validation_error_callback=reject_invalid,
        doc_ui=False,
    )
    app.openapi_version = OPENAPI_VERSION
    app.json = OrjsonProvider(app)
    app.secret_key = context.credentials.session_key()
    app.config.update(
        MAX_CONTENT_LENGTH=requests.MAX_BODY_BYTES,
        SESSION_COOKIE_NAME="guardwave",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=secure_cookies,
    )
    # A path with two slashes is wrong; werkzeug would redirect it with a page of HTML.
    app.url_map.merge_slashes = False
    app.extensions["guardwave"] = context
    app.extensions.update(extensions)
    if data_plane.EXTENSION not in app.extensions:
        app.extensions[data_plane.EXTENSION] = data_plane.build_data_plane(context)
    _register(app, otlp_prefix)
    return app


def _register(app: OpenAPI, otlp_prefix: str) -> None:
    app.before_request(requests.name_request)
    app.after_request(requests.echo_request_id)
    problems.register(app, problem_page, asks_for_page)
    app.register_api(assignments.blueprint)
    app.register_api(api_blueprint())
    app.register_blueprint(health.blueprint)
    app.register_blueprint(metrics.blueprint)
    app.register_blueprint(otlp_blueprint(otlp_prefix))
    app.register_blueprint(pages)
