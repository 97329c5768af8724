"""Demo bootstrap: its gates are within, and its past ends where the live week begins."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from guardwave.control_plane.commands.evaluations import request_evaluation
from guardwave.control_plane.core.clock import Clock, fixed_clock, to_ns
from guardwave.control_plane.core.policy import load
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.core.state import SYSTEM
from guardwave.control_plane.demo import bootstrap
from guardwave.control_plane.demo.bootstrap import INTERNAL, PUBLIC
from guardwave.control_plane.demo.story import GUARD
from guardwave.control_plane.jobs.evaluate import evaluate_gate
from guardwave.control_plane.jobs.worker import keep_lease
from guardwave.control_plane.rollouts.context import Context, make_context
from guardwave.control_plane.rollouts.days import complete_days, wave_days
from guardwave.control_plane.stores.audit import verify
from guardwave.control_plane.stores.server.clients import connect
from guardwave.control_plane.stores.server.embedded import EmbeddedServer
from guardwave.control_plane.stores.server.function_library import load_functions
from guardwave.reducer.vocabulary import Gate, Mode

POLICY = Path(bootstrap.__file__).with_name("policy.toml")
LIVE_AT = bootstrap.live_midnight(datetime(2026, 11, 29, 14, 30, tzinfo=UTC))

# Built once, if the runner keeps groups together.
pytestmark = pytest.mark.xdist_group("bootstrap")


@dataclass(frozen=True)
class Past:
    """The demo's store after its bootstrap, as it is when the live week begins."""

    context: Context
    tokens: bootstrap.DemoTokens
    reports: tuple[str, ...]


@pytest.fixture(scope="module")
def past() -> Iterator[Past]:
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        EmbeddedServer.start(Path(directory)) as server,
        connect(Settings(data_dir=server.data_dir)) as client,
    ):
        load_functions(client)
        running = Clock(wall_ns=lambda: 0, moment_origin_ns=to_ns(LIVE_AT), speed=10_000.0)
        context = make_context(
            client,
            clock=running,
            policies=load(POLICY),
            randomness=bootstrap.seeded_randomness(),
        )
        reports: list[str] = []
        tokens = bootstrap.build(context, LIVE_AT, report=reports.append)
        yield Past(replace(context, clock=fixed_clock(LIVE_AT)), tokens, tuple(reports))


def test_the_gates_of_the_story_are_within(past):
    found = past.context.gates.evaluations(INTERNAL, GUARD)
    assert [(evaluation.gate, evaluation.verdict) for evaluation in reversed(found)] == [
        (Gate.SHADOW, "within"),
        (Gate.WARN, "within"),
    ]
    assert all(len(evaluation.days_used) == 7 for evaluation in found)


def test_the_warn_gate_has_loop_events_of_other_guards_from_both_cohorts(past):
    newest = past.context.gates.evaluations(INTERNAL, GUARD)[0]
    notes = orjson.loads(newest.result)["notes"]
    numbers = next(note["numbers"] for note in notes if note["topic"] == "other_protections")
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
    evaluation = request_evaluation(past.context, PUBLIC, GUARD, gate=Gate.SHADOW, actor=SYSTEM)
    fence = past.context.jobs.lease(PUBLIC, "test")
    with keep_lease(past.context.jobs, PUBLIC, "test"):
        done = evaluate_gate(past.context, PUBLIC, GUARD, evaluation.id, fence=fence)
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


def test_the_bootstrap_reports_its_progress(past):
    assert len(past.reports) == 5
