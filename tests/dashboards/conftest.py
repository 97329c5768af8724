"""A Flask app with the real templates: over page models built by tests, or over a real store."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
import redis
from flask import Flask, g, render_template
from flask.testing import FlaskClient

from control_plane.access import (
    Identity,
    create_token,
)
from control_plane.clock import fixed
from control_plane.commands.environments import create_environment, create_rollout
from control_plane.context import Context, over
from control_plane.policy import load
from control_plane.state import Actor, ActorKind
from dashboards.pages import blueprint
from reducer.vocabulary import Role
from tests.dashboards.samples import GUARD

Render = Callable[..., str]
OPERATOR = Identity("t1", "ops", Role.OPERATOR, "internal")
ADMIN = Identity("t2", "root", Role.ADMIN, None)
VIEWER = Identity("t3", "eyes", Role.VIEWER, "internal")
NOW = datetime(2026, 11, 29, 12, 4, 31, tzinfo=UTC)
PERSON = Actor("ops (t1)", ActorKind.PERSON)
HERE = {"Sec-Fetch-Site": "same-origin"}
GUARD_PATH = f"/environments/internal/guards/{GUARD}"
SignIn = Callable[..., FlaskClient]


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


@pytest.fixture
def control(store: redis.Redis) -> Context:
    """Two environments, each with a rollout in shadow."""
    control = over(store, clock=fixed(NOW), policies=load(None))
    for name in ("internal", "public-cloud"):
        create_environment(control, name, requires=None, actor=PERSON, reason="set up for a test")
        create_rollout(
            control,
            name,
            GUARD,
            version_pin=("1.4.2",),
            actor=PERSON,
            reason="set up for a test",
        )
    return control


@pytest.fixture
def pages(control: Context) -> Flask:
    """The pages over that store."""
    app = Flask(__name__, static_folder=None)
    app.secret_key = "only for tests"
    app.extensions["guardwave"] = control
    app.register_blueprint(blueprint)
    return app


@pytest.fixture
def sign_in(pages: Flask, control: Context) -> SignIn:
    """Return a client that signed in with a new token of a role."""

    def signed_in(role: Role = Role.OPERATOR, environment: str | None = "internal") -> FlaskClient:
        scope = None if role is Role.ADMIN else environment
        client = pages.test_client()
        token = create_token(control, role=role, environment=scope)
        answer = client.post("/sign-in", headers=HERE, data={"token": token})
        assert answer.status_code == 303
        return client

    return signed_in
