"""API fixtures: the whole app over a real store, and a client for each role."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from redis import Redis
from werkzeug.serving import make_server
from werkzeug.test import TestResponse

from guardwave.control_plane.commands.environments import create_environment, create_rollout
from guardwave.control_plane.core.clock import Clock, to_ns
from guardwave.control_plane.core.errors import GuardwaveError, StartError
from guardwave.control_plane.core.policy import load
from guardwave.control_plane.core.state import Actor, ActorKind, Evaluation, EvaluationStatus
from guardwave.control_plane.data_plane import EXTENSION
from guardwave.control_plane.rollouts import context as contexts
from guardwave.control_plane.rollouts.access import create_token
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.server.app import create_app
from guardwave.reducer.rollout.state import gate_for
from guardwave.reducer.vocabulary import Role, Verdict

ENVIRONMENT = "internal"
GUARD = "identical_call"
PLACE = f"/api/v1/environments/{ENVIRONMENT}"
ROLLOUT = f"{PLACE}/guards/{GUARD}"
REASON = "because the test asks for it"
TESTER = Actor("tester", ActorKind.PERSON)


@dataclass
class Wall:
    """A wall clock that the test moves."""

    now: datetime = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)

    def pass_by(self, **duration: int) -> None:
        self.now += timedelta(**duration)


@dataclass
class Api:
    """A client that sends one token, and JSON."""

    app: Flask
    token: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, *, body: object = None, **headers: str) -> TestResponse:
        """Send a request; header names are given with underscores. No body is sent for None."""
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        if self.token is not None:
            named.setdefault("Authorization", f"Bearer {self.token}")
        sent = {**self.headers, **named}
        client = self.app.test_client()
        if body is None:
            return client.open(path, method=method, headers=sent)
        return client.open(path, method=method, headers=sent, json=body)

    def get(self, path: str, **headers: str) -> TestResponse:
        return self.ask("GET", path, **headers)

    def put(self, path: str, body: object, **headers: str) -> TestResponse:
        return self.ask("PUT", path, body=body, **headers)

    def post(self, path: str, body: object, **headers: str) -> TestResponse:
        return self.ask("POST", path, body=body, **headers)


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture
def context(store: Redis, wall: Wall) -> Context:
    clock = Clock(wall_ns=lambda: to_ns(wall.now))
    return contexts.make_context(store, clock=clock, policies=load(None))


@pytest.fixture
def app(context: Context) -> Iterator[Flask]:
    app = create_app(context, secure_cookies=False)
    yield app
    app.extensions[EXTENSION].refresher.stop()


@pytest.fixture
def address(app: Flask) -> Iterator[str]:
    """The address of the app behind real HTTP."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    serving.join()
    server.server_close()


@pytest.fixture
def as_role(app: Flask, context: Context) -> Callable[..., Api]:
    """Return a function that makes a client of a role, for one environment unless it is admin."""

    def client(role: Role, environment: str = ENVIRONMENT) -> Api:
        place = None if role is Role.ADMIN else environment
        return Api(app, create_token(context, role=role, environment=place))

    return client


@pytest.fixture
def admin(as_role: Callable[..., Api]) -> Api:
    return as_role(Role.ADMIN)


@pytest.fixture
def operator(as_role: Callable[..., Api]) -> Api:
    return as_role(Role.OPERATOR)


@pytest.fixture
def viewer(as_role: Callable[..., Api]) -> Api:
    return as_role(Role.VIEWER)


@pytest.fixture
def rollout(context: Context) -> str:
    """The address of a new rollout in a new environment."""
    create_environment(context, ENVIRONMENT, requires=None, actor=TESTER, reason=REASON)
    create_rollout(context, ENVIRONMENT, GUARD, version_pin=("1.0",), actor=TESTER, reason=REASON)
    return ROLLOUT


@pytest.fixture
def passed_gate(context: Context, rollout: str) -> Callable[..., Evaluation]:
    """Return a function that stores a finished evaluation of the phase's gate."""

    def evaluate(verdict: Verdict = Verdict.WITHIN) -> Evaluation:
        held = context.environments.rollout(ENVIRONMENT, GUARD)
        assert held is not None
        gate = gate_for(held.phase)
        assert gate is not None
        now = context.clock.now()
        number = context.gates.next_evaluation(ENVIRONMENT, GUARD)
        asked = Evaluation(number, GUARD, gate, requested_at=now, actor=TESTER)
        context.gates.request_evaluation(ENVIRONMENT, asked)
        done = replace(
            asked,
            status=EvaluationStatus.DONE,
            evaluated_at=now,
            generation=held.generation,
            wave=held.wave,
            verdict=verdict,
            sentence="All checks are within their margins.",
            digest="d" * 64,
            result=f'{{"schema": 1, "policy_hash": "{context.policies.hash}"}}',
        )
        fence = context.jobs.lease(ENVIRONMENT, "test")
        assert context.gates.finish_evaluation(ENVIRONMENT, done, fence=fence)
        return done

    return evaluate


def assert_problem(response: TestResponse, status: int, code: str) -> dict[str, Any]:
    """Check that the answer is this problem in every part that all problems have."""
    assert response.status_code == status, response.text
    assert response.mimetype == "application/problem+json"
    document: dict[str, Any] = response.get_json()
    assert document["type"] == f"/problems/{code}"
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    assert document["instance"] == response.headers["X-Request-Id"]
    assert "Traceback" not in response.text
    return document


def every_problem() -> Iterator[type[GuardwaveError]]:
    """Yield every error that an answer can be about."""
    waiting: list[type[GuardwaveError]] = [GuardwaveError]
    while waiting:
        kind = waiting.pop()
        if not issubclass(kind, StartError):
            waiting.extend(kind.__subclasses__())
            yield kind
