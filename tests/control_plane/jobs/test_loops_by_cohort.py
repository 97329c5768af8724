"""From a host's loop events to what a gate says of them: by cohort, for information, or unknown."""

from dataclasses import replace

import orjson
import pytest

from analysis.loops import NOT_KEPT, UNHEARD
from control_plane.jobs.bundles import unpacked
from control_plane.jobs.concluding import conclude
from control_plane.jobs.gathering import gather
from control_plane.jobs.owner_day_table import OwnerDayTable
from control_plane.jobs.replaying import replay
from control_plane.queries.archive_lines import encoded
from control_plane.queries.archives import archive_of
from control_plane.stores.evidence_pages import PlacedOwnerDay
from reducer.vocabulary import Cohort, Gate, Mode
from tests.control_plane.hosts import Event, Prompt, logs
from tests.control_plane.lives import Life
from tests.control_plane.worlds import ENVIRONMENT, GUARD

NAME = "agent.guard.loop_detected"


@pytest.fixture
def life(store):
    """A life with a week of shadow, in a warn wave."""
    life = Life.begin(store)
    life.live(7)
    assert life.promote(Mode.WARN).refusal is None
    return life


def looped(life: Life, told: list[Event]):
    """Return a change that lets every fifth owner's prompts end at a limit of the host."""

    def change(prompt: Prompt) -> Prompt:
        owner = int(prompt.prompt_id.partition("/")[0].rpartition("-")[2])
        if owner % 5 == 0:
            attributes = {
                "agent.guard.prompt.id": prompt.prompt_id,
                "agent.guard.assignment.id": prompt.ids[0],
                "agent.guard.loop.type": "total_tool_calls",
            }
            told.append(Event(NAME, prompt.at, attributes))
        return prompt

    return change


def live_with_loops(life: Life, days: int) -> int:
    """Let days pass on which loop events come too; return how many came."""
    total = 0
    for _ in range(days):
        told: list[Event] = []
        day_before = life.calendar.now
        life.live(1, change=looped(life, told))
        assert life.calendar.now > day_before
        assert life.host.send(logs(told)).body == b""
        total += len(told)
    return total


def loops_note(evaluation):
    found = orjson.loads(evaluation.result)["notes"]
    return next(note for note in found if note["topic"] == "other_protections")


def test_loop_events_of_both_cohorts_are_told_per_thousand_prompts(life):
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
    told = (note["numbers"]["treated_per_1000"], note["numbers"]["reference_per_1000"])
    assert told == pytest.approx([1000 * loops / started for loops, started in by_cohort.values()])
    assert not note["is_warning"]
    assert "loops" in gathered.owner_days.counts


def test_the_bundle_holds_them_and_gives_the_same_bytes(life):
    live_with_loops(life, 8)
    evaluation = life.evaluate()
    held = unpacked(b"".join(life.context.gates.bundle_parts(ENVIRONMENT, GUARD, evaluation.id)))
    assert sum(held.gathered.owner_days.counts["loops"]) > 0
    assert replay(held).difference is None


def test_an_exported_owner_day_names_its_loops(life):
    live_with_loops(life, 1)
    lines = archive_of(life.context, ENVIRONMENT)
    rows = [orjson.loads(encoded(each)) for each in lines if isinstance(each, PlacedOwnerDay)]
    assert {row["loops"] for row in rows if row["wave"] == 2} == {0, 2}


def test_a_host_that_sends_no_loop_events_has_no_rate_of_zero(life):
    life.live(8)
    assert loops_note(life.evaluate())["sentence"] == UNHEARD


def test_one_owner_day_without_them_makes_them_unknown_and_changes_nothing_else(life):
    live_with_loops(life, 8)
    gathered, rows = gather(life.context, life.rollout, life.wave, gate=Gate.WARN)
    older = [replace(rows[0], loops=None), *rows[1:]]
    found = conclude(replace(gathered, owner_days=OwnerDayTable.of(older, 7)))
    told = conclude(gathered)
    assert loops_note(found)["sentence"] == NOT_KEPT
    assert found.evaluation.checks == told.evaluation.checks
    assert found.evaluation.metrics == told.evaluation.metrics
    assert found.evaluation.verdict is told.evaluation.verdict
