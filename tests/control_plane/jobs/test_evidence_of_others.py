"""Evidence of others: no other wave or environment changes a verdict."""

from datetime import timedelta

import orjson
import pytest

from guardwave.analysis.report import Check
from guardwave.control_plane.jobs.conclude import conclude
from guardwave.control_plane.jobs.gather import gather
from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.rollout.days import day_start
from guardwave.reducer.rollout.state import gate_for
from guardwave.reducer.vocabulary import Cohort, Mode
from tests.support.hosts import Assigner, Calendar, Prompt, issue_id, pseudonym_in
from tests.support.lives import Life
from tests.support.worlds import GUARD


@pytest.fixture
def warned(store):
    """A life in warn, with seven complete days of both cohorts."""
    life = Life.begin(store)
    life.live(7)
    life.promote(Mode.WARN)
    life.live(7)
    return life


def verdict_in(life: Life) -> str:
    """Return the bytes of the verdict on the life's wave, as text."""
    gate = gate_for(life.rollout.phase)
    assert gate is not None
    return conclude(gather(life.context, life.rollout, life.wave, gate=gate).gathered).result


def without_contract(verdict: str) -> str:
    """Return a verdict without its contract check, which is about every record there is."""
    result = orjson.loads(verdict)
    del result["evidence_digest"]
    result["checks"] = [check for check in result["checks"] if check["check"] != Check.CONTRACT]
    return orjson.dumps(result, option=orjson.OPT_SORT_KEYS).decode()


def send_failing_prompts(life: Life, assignment_id: str, *, prompts: int = 5) -> None:
    """Send failing prompts of yesterday under one assignment id."""
    morning = day_start(life.today - timedelta(days=1)) + timedelta(hours=9)
    failing = [
        Prompt(f"more/{number}", (assignment_id,), morning, outcome="failed", tokens=90_000)
        for number in range(prompts)
    ]
    assert life.host.send_prompts(*failing).body == b""


def in_another_environment(life: Life) -> None:
    other = Life.begin(life.store, environment="other", calendar=Calendar(life.calendar.now))
    other.live(2)


def in_an_earlier_wave(life: Life) -> None:
    pseudonym = pseudonym_in(life.context, life.owners[0])
    shadow = Assignment(GUARD, pseudonym, 1, Cohort.EVERYONE, Mode.SHADOW, 1)
    send_failing_prompts(life, issue_id(life.context, shadow))


def off_the_roster(life: Life) -> None:
    assignment, assignment_id = Assigner(life.context, life.environment).of("a-new-owner")
    assert assignment.cohort in {Cohort.OUTSIDE, Cohort.INELIGIBLE}
    send_failing_prompts(life, assignment_id)


def test_prompts_of_another_environment_change_no_byte_of_a_verdict(warned):
    before = verdict_in(warned)
    in_another_environment(warned)
    assert verdict_in(warned) == before


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(in_an_earlier_wave, id="another wave"),
        pytest.param(off_the_roster, id="an owner who is not on the roster"),
    ],
)
def test_prompts_of_others_change_nothing_but_the_contract_share(warned, more):
    before = verdict_in(warned)
    more(warned)
    after = verdict_in(warned)
    assert after != before
    assert without_contract(after) == without_contract(before)


def test_prompts_of_an_owner_of_the_wave_change_its_verdict(warned):
    before = verdict_in(warned)
    send_failing_prompts(
        warned, Assigner(warned.context, warned.environment).of(warned.owners[0])[1]
    )
    assert without_contract(verdict_in(warned)) != without_contract(before)
