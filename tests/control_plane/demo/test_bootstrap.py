"""The demo's past: its gates come out within, and it ends where the live week begins."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from control_plane.clock import Clock, fixed, to_ns
from control_plane.commands.evaluations import request_evaluation
from control_plane.context import Context, over
from control_plane.demo import bootstrap
from control_plane.demo.bootstrap import INTERNAL, PUBLIC
from control_plane.demo.story import GUARD
from control_plane.jobs.evaluating import evaluate_gate
from control_plane.jobs.leases import lease_kept
from control_plane.policy import load
from control_plane.queries.days import complete_days, wave_days
from control_plane.settings import Settings
from control_plane.state import SYSTEM
from control_plane.stores.audit import verify
from control_plane.stores.clients import connect
from control_plane.stores.embedded import EmbeddedServer
from control_plane.stores.functions import load_functions
from reducer.vocabulary import Gate, Mode

POLICY = Path(bootstrap.__file__).with_name("policy.toml")
LIVE_AT = bootstrap.live_midnight(datetime(2026, 11, 29, 14, 30, tzinfo=UTC))

# Built once, where the runner is told to keep groups together.
pytestmark = pytest.mark.xdist_group("bootstrap")


@dataclass(frozen=True)
class Past:
    """The demo's store after its bootstrap, as it is when the live week begins."""

    context: Context
    tokens: bootstrap.DemoTokens
    said: tuple[str, ...]


@pytest.fixture(scope="module")
def past() -> Iterator[Past]:
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        EmbeddedServer.start(Path(directory)) as server,
        connect(Settings(data_dir=server.data_dir)) as client,
    ):
        load_functions(client)
        running = Clock(wall_ns=lambda: 0, moment_origin_ns=to_ns(LIVE_AT), speed=10_000.0)
        context = over(
            client,
            clock=running,
            policies=load(POLICY),
            randomness=bootstrap.seeded_randomness(),
        )
        said: list[str] = []
        tokens = bootstrap.build(context, LIVE_AT, say=said.append)
        yield Past(replace(context, clock=fixed(LIVE_AT)), tokens, tuple(said))


def test_the_gates_of_the_story_are_within(past):
    found = past.context.gates.evaluations(INTERNAL, GUARD)
    assert [(each.gate, each.verdict) for each in reversed(found)] == [
        (Gate.SHADOW, "within"),
        (Gate.WARN, "within"),
    ]
    assert all(len(each.days_used) == 7 for each in found)


def test_the_warn_gate_has_loop_events_of_other_guards_from_both_cohorts(past):
    newest = past.context.gates.evaluations(INTERNAL, GUARD)[0]
    notes = orjson.loads(newest.result)["notes"]
    numbers = next(each["numbers"] for each in notes if each["topic"] == "other_protections")
    assert 2 < numbers["treated_per_1000"] < 10
    assert 2 < numbers["reference_per_1000"] < 10
    assert numbers["difference_low"] < 0 < numbers["difference_high"]


def test_internal_ends_in_enforce_with_five_percent_at_most_of_a_thousand_owners(past):
    rollout = past.context.environments.rollout(INTERNAL, GUARD)
    wave = past.context.environments.wave(INTERNAL, GUARD, rollout.wave)
    assert (rollout.phase, rollout.treated_bps) == (Mode.ENFORCE, 500)
    assert wave.roster_size >= 1000
    assert 30 <= wave.treated <= wave.roster_size * 0.05
    assert wave.opened_at < LIVE_AT


def test_public_cloud_ends_in_shadow_with_a_week_that_counts(past):
    rollout = past.context.environments.rollout(PUBLIC, GUARD)
    wave = past.context.environments.wave(PUBLIC, GUARD, rollout.wave)
    assert rollout.phase is Mode.SHADOW
    assert len(complete_days(wave_days(past.context, PUBLIC, wave))) == 7
    asked = request_evaluation(past.context, PUBLIC, GUARD, gate=Gate.SHADOW, actor=SYSTEM)
    fence = past.context.jobs.lease(PUBLIC, "test")
    with lease_kept(past.context.jobs, PUBLIC, "test"):
        done = evaluate_gate(past.context, PUBLIC, GUARD, asked.id, fence=fence)
    assert done is not None
    assert done.verdict == "within"


@pytest.mark.parametrize("environment", [INTERNAL, PUBLIC])
def test_the_past_is_audited_as_the_bootstraps_own(past, environment):
    held = past.context.environments.load(environment)
    chain = past.context.environments.audit_chain(environment)
    assert verify(chain, head=held.head) is None
    entries = past.context.environments.audit_entries(environment)
    assert {entry["actor_kind"] for entry in entries} == {"demo bootstrap"}
    assert "history imported" in {entry["action"] for entry in entries}
    assert held.latch is None


def test_the_bootstrap_leaves_no_job_and_no_lease(past):
    assert past.context.jobs.take(INTERNAL) is None
    assert past.context.jobs.lease(INTERNAL, "the worker") > 0


def test_the_bootstrap_says_what_it_does(past):
    assert len(past.said) == 5
