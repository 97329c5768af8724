"""A Flask app with the real templates: over page models built by tests, or over a real store."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import redis
from flask import Flask, g, render_template
from flask.testing import FlaskClient

from guardwave.control_plane.commands.environments import create_environment, create_rollout
from guardwave.control_plane.core.clock import fixed_clock
from guardwave.control_plane.core.policy import load
from guardwave.control_plane.core.state import Actor, ActorKind
from guardwave.control_plane.http.middleware import problems, requests
from guardwave.control_plane.rollouts.access import Identity, create_token
from guardwave.control_plane.rollouts.context import Context, make_context
from guardwave.dashboards import blueprint
from guardwave.dashboards.problems import asks_for_page, problem_page
from guardwave.reducer.vocabulary import Role
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


class Browser(FlaskClient):
    """A client that asks for pages, as browsers do."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.environ_base["HTTP_ACCEPT"] = "text/html,application/xhtml+xml,*/*;q=0.8"


def pages_over(context: Context | None) -> Flask:
    """Return an app that has only the pages and their error pages."""
    app = Flask(__name__, static_folder=None)
    app.test_client_class = Browser
    app.secret_key = "only for tests"
    app.extensions["guardwave"] = context
    app.before_request(requests.name_request)
    problems.register(app, problem_page, asks_for_page)
    app.register_blueprint(blueprint)
    return app


@pytest.fixture(scope="session")
def app() -> Flask:
    """The pages on an app with no store behind it."""
    return pages_over(None)


@pytest.fixture
def render(app: Flask) -> Render:
    """Render a template as a signed-in identity sees it; an admin by default."""

    def rendered(template: str, *, identity: Identity | None = ADMIN, **values: object) -> str:
        with app.test_request_context("/"):
            g.identity = identity
            return render_template(template, **values)

    return rendered


@pytest.fixture
def control(store: redis.Redis) -> Context:
    """Two environments with a rollout in shadow in each."""
    control = make_context(store, clock=fixed_clock(NOW), policies=load(None))
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
    return pages_over(control)


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
