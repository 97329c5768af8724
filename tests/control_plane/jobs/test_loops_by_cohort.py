"""Loop events by cohort: from a host's records to the note of a gate."""

from dataclasses import replace

import orjson
import pytest

from guardwave.analysis.gate.loop_events import NO_LOOP_EVENTS, NO_LOOPS_BY_OWNER
from guardwave.control_plane.archive.export import export_archive
from guardwave.control_plane.archive.lines import encode_line
from guardwave.control_plane.jobs.bundles import unpack_bundle
from guardwave.control_plane.jobs.conclude import conclude
from guardwave.control_plane.jobs.gather import gather
from guardwave.control_plane.jobs.owner_day_table import OwnerDayTable
from guardwave.control_plane.jobs.replay import replay
from guardwave.control_plane.stores.evidence.pages import StratumOwnerDay
from guardwave.reducer.vocabulary import Cohort, Gate, Mode
from tests.support.hosts import Event, Prompt, logs
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD

NAME = "agent.guard.loop_detected"


@pytest.fixture
def life(store):
    """A life with a week of shadow, in a warn wave."""
    life = Life.begin(store)
    life.live(7)
    assert life.promote(Mode.WARN).refusal is None
    return life


def with_loop_limits(life: Life, loop_events: list[Event]):
    """Return a change that lets every fifth owner's prompts end at a limit of the host."""

    def change(prompt: Prompt) -> Prompt:
        owner = int(prompt.prompt_id.partition("/")[0].rpartition("-")[2])
        if owner % 5 == 0:
            attributes = {
                "agent.guard.prompt.id": prompt.prompt_id,
                "agent.guard.assignment.id": prompt.ids[0],
                "agent.guard.loop.type": "total_tool_calls",
            }
            loop_events.append(Event(NAME, prompt.at, attributes))
        return prompt

    return change


def live_with_loops(life: Life, days: int) -> int:
    """Let days pass on which loop events come too; return how many came."""
    total = 0
    for _ in range(days):
        loop_events: list[Event] = []
        day_before = life.calendar.now
        life.live(1, change=with_loop_limits(life, loop_events))
        assert life.calendar.now > day_before
        assert life.host.send(logs(loop_events)).body == b""
        total += len(loop_events)
    return total


def loops_note(evaluation):
    found = orjson.loads(evaluation.result)["notes"]
    return next(note for note in found if note["topic"] == "other_protections")


def test_loop_events_of_both_cohorts_are_reported_per_thousand_prompts(life):
    total = live_with_loops(life, 8)
    evaluation = life.evaluate()
    note = loops_note(evaluation)
    gathered, rows = gather(life.context, life.rollout, life.wave, gate=Gate.WARN)
    by_cohort = {
        cohort: (
            sum(row.loops or 0 for row in rows if row.cohort is cohort),
            sum(row.started for row in rows if row.cohort is cohort),
        )
        for cohort in (Cohort.WARNED, Cohort.HOLDBACK)
    }
    assert 0 < sum(loops for loops, _ in by_cohort.values()) <= total
    rates = (note["numbers"]["treated_per_1000"], note["numbers"]["reference_per_1000"])
    assert rates == pytest.approx([1000 * loops / started for loops, started in by_cohort.values()])
    assert not note["is_warning"]
    assert "loops" in gathered.owner_days.counts


def test_the_bundle_holds_the_loop_events_and_replays_to_the_same_bytes(life):
    live_with_loops(life, 8)
    evaluation = life.evaluate()
    held = unpack_bundle(
        b"".join(life.context.gates.bundle_parts(ENVIRONMENT, GUARD, evaluation.id))
    )
    assert sum(held.gathered.owner_days.counts["loops"]) > 0
    assert replay(held).difference is None


def test_an_exported_owner_day_names_its_loops(life):
    live_with_loops(life, 1)
    lines = export_archive(life.context, ENVIRONMENT)
    rows = [orjson.loads(encode_line(line)) for line in lines if isinstance(line, StratumOwnerDay)]
    assert {row["loops"] for row in rows if row["wave"] == 2} == {0, 2}


def test_a_host_that_sends_no_loop_events_has_no_rate_of_zero(life):
    life.live(8)
    assert loops_note(life.evaluate())["sentence"] == NO_LOOP_EVENTS


def test_one_owner_day_without_loop_events_makes_them_unknown_and_nothing_else(life):
    live_with_loops(life, 8)
    gathered, rows = gather(life.context, life.rollout, life.wave, gate=Gate.WARN)
    older = [replace(rows[0], loops=None), *rows[1:]]
    found = conclude(replace(gathered, owner_days=OwnerDayTable.of(older, 7)))
    complete = conclude(gathered)
    assert loops_note(found)["sentence"] == NO_LOOPS_BY_OWNER
    assert found.evaluation.checks == complete.evaluation.checks
    assert found.evaluation.metrics == complete.evaluation.metrics
    assert found.evaluation.verdict is complete.evaluation.verdict
