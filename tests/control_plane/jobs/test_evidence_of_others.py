"""A verdict is about one wave of one environment: what others do is not in it."""

from datetime import timedelta

import orjson
import pytest

from analysis.report import Check
from control_plane.jobs.concluding import conclude
from control_plane.jobs.gathering import gather
from reducer.rollout.assignment import Assignment
from reducer.rollout.days import day_start
from reducer.rollout.phases import gate_for
from reducer.vocabulary import Cohort, Mode
from tests.control_plane.hosts import Assigner, Calendar, Prompt, issued, pseudonym_in
from tests.control_plane.lives import Life
from tests.control_plane.worlds import GUARD


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
    told = orjson.loads(verdict)
    del told["evidence_digest"]
    told["checks"] = [check for check in told["checks"] if check["check"] != Check.CONTRACT]
    return orjson.dumps(told, option=orjson.OPT_SORT_KEYS).decode()


def tell(life: Life, assignment_id: str, *, prompts: int = 5) -> None:
    """Tell failing prompts of yesterday under one assignment id."""
    morning = day_start(life.today - timedelta(days=1)) + timedelta(hours=9)
    told = [
        Prompt(f"more/{number}", (assignment_id,), morning, outcome="failed", tokens=90_000)
        for number in range(prompts)
    ]
    assert life.host.tell(*told).body == b""


def in_another_environment(life: Life) -> None:
    other = Life.begin(life.store, environment="other", calendar=Calendar(life.calendar.now))
    other.live(2)


def in_an_earlier_wave(life: Life) -> None:
    pseudonym = pseudonym_in(life.context, life.owners[0])
    shadow = Assignment(GUARD, pseudonym, 1, Cohort.EVERYONE, Mode.SHADOW, 1)
    tell(life, issued(life.context, shadow))


def off_the_roster(life: Life) -> None:
    assignment, assignment_id = Assigner(life.context, life.environment).of("a-new-owner")
    assert assignment.cohort in {Cohort.OUTSIDE, Cohort.INELIGIBLE}
    tell(life, assignment_id)


def test_what_another_environment_does_changes_no_byte_of_a_verdict(warned):
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
def test_what_others_of_the_environment_do_changes_nothing_but_its_contract_share(warned, more):
    before = verdict_in(warned)
    more(warned)
    after = verdict_in(warned)
    assert after != before
    assert without_contract(after) == without_contract(before)


def test_what_an_owner_of_the_wave_does_changes_its_verdict(warned):
    before = verdict_in(warned)
    tell(warned, Assigner(warned.context, warned.environment).of(warned.owners[0])[1])
    assert without_contract(verdict_in(warned)) != without_contract(before)
