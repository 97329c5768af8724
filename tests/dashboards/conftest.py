"""A Flask app that renders the real templates with page models built by the tests."""

from collections.abc import Callable

import pytest
from flask import Flask, g, render_template

from control_plane.access import Identity
from dashboards.pages import blueprint
from reducer.vocabulary import Role

Render = Callable[..., str]

OPERATOR = Identity("t1", "ops", Role.OPERATOR, "internal")
ADMIN = Identity("t2", "root", Role.ADMIN, None)
VIEWER = Identity("t3", "eyes", Role.VIEWER, "internal")


@pytest.fixture(scope="session")
def app() -> Flask:
    """The pages' blueprint on a bare app, with no store behind it."""
    app = Flask(__name__, static_folder=None)
    app.secret_key = "only for tests"
    app.register_blueprint(blueprint)
    return app


@pytest.fixture
def render(app: Flask) -> Render:
    """Render a template as a signed-in identity sees it; an admin unless told otherwise."""

    def rendered(template: str, *, identity: Identity | None = ADMIN, **values: object) -> str:
        with app.test_request_context("/"):
            g.identity = identity
            return render_template(template, **values)

    return rendered
