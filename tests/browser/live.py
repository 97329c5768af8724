"""Live server for browsers: the demo's history in its own store, on wall time."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import pytest
import redis
import urllib3

from guardwave.control_plane.cli.serve import sign_in_link
from guardwave.control_plane.commands.environments import create_environment, create_rollout
from guardwave.control_plane.commands.evaluations import request_evaluation
from guardwave.control_plane.commands.rollback import FoundViolation, latch
from guardwave.control_plane.core.clock import Clock, fixed_clock, to_ns
from guardwave.control_plane.core.policy import load
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.core.state import Actor, ActorKind
from guardwave.control_plane.demo import bootstrap
from guardwave.control_plane.demo.story import GUARD, VERSION
from guardwave.control_plane.jobs.evaluate import evaluate_gate
from guardwave.control_plane.jobs.worker import keep_lease
from guardwave.control_plane.rollouts.context import Context, make_context, open_store
from guardwave.control_plane.server.supervisor import url_of
from guardwave.control_plane.stores.server.embedded import EmbeddedServer
from guardwave.reducer.vocabulary import Gate, Invariant, Mode
from tests.support.web_workers import PATIENCE_S, free_port

LATCHED = "lab"
# As long as a name may be, with nothing to break it at.
LONG = "x" * 48
_ROOT = Path(__file__).parents[2]
_ACTOR = Actor("tests of pages", ActorKind.BOOTSTRAP)
_WHY = "an environment for browsers"


@dataclass(frozen=True, slots=True)
class LiveServer:
    """Where it listens, and a link that signs in as an admin, once.

    internal is in its first enforce wave, public-cloud's shadow gate is within, lab is latched,
    and one environment has the longest name there is.
    """

    url: str
    sign_in_url: str
    environments: tuple[str, ...]


@contextmanager
def served(data_dir: Path) -> Iterator[LiveServer]:
    """Build the past in an empty directory, then run `guardwave serve` on it."""
    policy = resources.files("guardwave.control_plane.demo").joinpath("policy.toml")
    settings = Settings(data_dir=data_dir, port=free_port(), policy_path=Path(str(policy)))
    with EmbeddedServer.start(data_dir), open_store(settings) as client:
        link = build_past(client, settings)
    output = data_dir / "serve.out"
    given = {name: text for name, text in os.environ.items() if name != "REDIS_URL"}
    with output.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", "guardwave.control_plane.cli", "serve"],
            cwd=_ROOT,
            env={
                **given,
                "GUARDWAVE_DATA": str(data_dir),
                "GUARDWAVE_PORT": str(settings.port),
                "GUARDWAVE_POLICY": str(policy),
            },
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_until_ready(server, url_of(settings), output)
            names = (bootstrap.INTERNAL, bootstrap.PUBLIC, LATCHED, LONG)
            yield LiveServer(url_of(settings), link, names)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(PATIENCE_S)


def build_past(client: redis.Redis, settings: Settings) -> str:
    """Tell the demo's story up to today, without the mark that `serve` refuses."""
    now = datetime.now(UTC)
    # A clock that is not wall time is what a history's import asks for.
    clock = Clock(wall_origin_ns=to_ns(now), moment_origin_ns=to_ns(now), speed=2.0)
    context = make_context(
        client,
        clock=clock,
        policies=load(settings.policy_path),
        randomness=bootstrap.seeded_randomness(),
    )
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    bootstrap.build(context, midnight, report=lambda _text: None)
    context = replace(context, clock=fixed_clock(now))
    fence = context.jobs.lease(bootstrap.PUBLIC, _ACTOR.id)
    asked = request_evaluation(context, bootstrap.PUBLIC, GUARD, gate=Gate.SHADOW, actor=_ACTOR)
    with keep_lease(context.jobs, bootstrap.PUBLIC, _ACTOR.id):
        evaluate_gate(context, bootstrap.PUBLIC, GUARD, asked.id, fence=fence)
    context.jobs.release(bootstrap.PUBLIC)
    build_latched(context)
    create_environment(context, LONG, requires=None, actor=_ACTOR, reason=_WHY)
    create_rollout(context, LONG, GUARD, version_pin=(VERSION,), actor=_ACTOR, reason=_WHY)
    return sign_in_link(
        make_context(client, clock=Clock(), policies=context.policies), settings, name="me"
    )


def build_latched(context: Context) -> None:
    create_environment(context, LATCHED, requires=None, actor=_ACTOR, reason=_WHY)
    create_rollout(context, LATCHED, GUARD, version_pin=(VERSION,), actor=_ACTOR, reason=_WHY)
    found = FoundViolation(
        identity="a record of the tests",
        invariant=Invariant.CONTRACT_VIOLATION,
        guard=GUARD,
        mode=Mode.SHADOW,
        generation=1,
    )
    assert latch(context, LATCHED, [found]) is not None


def _wait_until_ready(server: subprocess.Popen[bytes], url: str, output: Path) -> None:
    pool = urllib3.PoolManager(retries=False, timeout=2.0)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if pool.request("GET", f"{url}/readyz").status == 200:
                return
        except urllib3.exceptions.HTTPError:
            pass
        try:
            server.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
        break
    pytest.fail(f"{url} did not become ready; it printed:\n{output.read_text()}")
