"""What a gate evaluation takes as its wave's evidence, and what it leaves to others."""

from dataclasses import replace
from datetime import timedelta

import orjson
import pytest

from analysis.evidence import Share, WaveEvidence
from control_plane.commands.rollback import FoundViolation, latch
from control_plane.jobs.concluding import evidence_of
from control_plane.jobs.deciding import decide_overdue
from control_plane.jobs.gathering import gather
from control_plane.jobs.owner_day_table import OwnerDayTable
from control_plane.state import Evaluation
from reducer.rollout.assignment import Assignment
from reducer.rollout.days import day_start
from reducer.rollout.phases import gate_for
from reducer.vocabulary import Cohort, Gate, Invariant, Mode, Verdict
from tests.control_plane.hosts import Prompt, issued, logs, pseudonym_in
from tests.control_plane.lives import Life
from tests.control_plane.worlds import GUARD

OTHER_GUARD = "identical_call"


@pytest.fixture
def week(store):
    """A life in shadow with seven complete days."""
    life = Life.begin(store)
    life.live(7)
    return life


def evidence_in(life: Life) -> WaveEvidence:
    """Return the evidence of the life's wave, as its gate takes it."""
    gate = gate_for(life.rollout.phase)
    assert gate is not None
    return evidence_of(gather(life.context, life.rollout, life.wave, gate=gate).gathered)


def switched(life: Life) -> int:
    evidence = evidence_in(life)
    return evidence.violations.get(Invariant.TREATMENT_SWITCHED, 0)


def tell_two(life: Life, *, guard: str = GUARD, wave: int = 1) -> None:
    """Tell one prompt of yesterday under an id of shadow, then under one in mode warn."""
    prompt = Prompt("p-1", [], day_start(life.today - timedelta(days=1)) + timedelta(hours=9))
    pseudonym = pseudonym_in(life.context, life.owners[0])
    for mode, told in ((Mode.SHADOW, prompt.start()), (Mode.WARN, prompt.end())):
        assignment = Assignment(guard, pseudonym, wave, Cohort.EVERYONE, mode, 1)
        attributes = {
            **told.attributes,
            "agent.guard.assignment.id": issued(life.context, assignment),
        }
        life.host.send(logs([replace(told, attributes=attributes)]))


def test_a_prompt_that_switched_its_mode_counts_against_its_wave(week):
    tell_two(week)
    assert switched(week) == 1
    assert week.evaluate().verdict == Verdict.BEYOND


def test_a_switched_prompt_that_was_recorded_as_a_violation_counts_once(week):
    tell_two(week)
    rollout, wave, gate = week.rollout, week.wave, gate_for(week.rollout.phase)
    assert gate is not None
    week.calendar.now += timedelta(minutes=3)
    decide_overdue(week.context, rollout.environment)
    recorded = week.context.incidents.violations(rollout.environment)
    assert [each.invariant for each in recorded] == [Invariant.TREATMENT_SWITCHED]

    evidence = evidence_of(gather(week.context, rollout, wave, gate=gate).gathered)
    assert evidence.violations == {Invariant.TREATMENT_SWITCHED: 1}


@pytest.mark.parametrize(
    ("guard", "counted"),
    [
        pytest.param(GUARD, 1, id="of the guard, so that the owner-day may be its own"),
        pytest.param(OTHER_GUARD, 2, id="of another guard"),
    ],
)
def test_a_recorded_switch_counts_whether_or_not_an_owner_day_shows_one(week, guard, counted):
    rollout, wave, gate = week.rollout, week.wave, gate_for(week.rollout.phase)
    assert gate is not None
    broken = FoundViolation("p-2", Invariant.TREATMENT_SWITCHED, guard, Mode.WARN, 1)
    latch(week.context, rollout.environment, [broken])
    evidence = evidence_of(gather(week.context, rollout, wave, gate=gate).gathered)
    assert evidence.violations == {Invariant.TREATMENT_SWITCHED: 1}

    tell_two(week)
    evidence = evidence_of(gather(week.context, rollout, wave, gate=gate).gathered)
    assert evidence.violations == {Invariant.TREATMENT_SWITCHED: counted}


@pytest.mark.parametrize(
    "whose",
    [
        pytest.param({"guard": OTHER_GUARD}, id="another guard"),
        pytest.param({"wave": 2}, id="another wave"),
    ],
)
def test_a_switch_elsewhere_counts_against_no_other_wave(week, whose):
    tell_two(week, **whose)
    assert switched(week) == 0
    assert week.evaluate().verdict == Verdict.WITHIN


def test_a_new_version_in_the_midst_of_a_prompt_is_no_switch(week):
    prompt = next(iter(week.prompts(week.today - timedelta(days=1))))
    prompt = replace(prompt, prompt_id="updated")
    week.host.send(logs([prompt.start()]))
    week.host.send(logs([prompt.end()], version="1.5.0"))
    assert switched(week) == 0


def test_a_switch_of_a_prompt_that_never_started_is_no_owner_day(week):
    before = evidence_in(week)
    at = day_start(week.today - timedelta(days=1)) + timedelta(hours=9)
    pseudonym = pseudonym_in(week.context, "a stranger")
    for sequence, mode in enumerate((Mode.SHADOW, Mode.WARN), start=1):
        assignment = Assignment(GUARD, pseudonym, 1, Cohort.EVERYONE, mode, 1)
        prompt = Prompt("p-1", [issued(week.context, assignment)], at)
        week.host.send(logs([prompt.transition(sequence, "tracked")]))
    after = evidence_in(week)
    assert after.owners.equals(before.owners)
    assert switched(week) == 1


@pytest.mark.parametrize(
    ("updated", "verdict"),
    [
        pytest.param(3, Verdict.WITHIN, id="fewer than one in a hundred"),
        pytest.param(4, Verdict.INVALID, id="one in a hundred"),
    ],
)
def test_prompts_of_a_version_that_is_not_pinned_count_against_purity(week, updated, verdict):
    prompts = list(week.prompts(week.today - timedelta(days=1)))[:updated]
    renamed = [replace(each, prompt_id=f"2.0 {each.prompt_id}") for each in prompts]
    told = [event for prompt in renamed for event in prompt.events()]
    week.host.send(logs(told, version="2.0.0"))

    evidence = evidence_in(week)

    assert evidence.off_pin == {Cohort.EVERYONE: Share(updated, 336 + updated)}
    assert week.evaluate().verdict == verdict


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"contract": Share(1, 2)}, id="contract"),
        pytest.param({"violations": {Invariant.MODE_MISMATCH: 1}}, id="violations"),
        pytest.param({"declared_days": 8}, id="declared days"),
        pytest.param({"days": ()}, id="days"),
        pytest.param({"owner_days": OwnerDayTable.of(())}, id="owner-days"),
        pytest.param({"roster": ("aaaaaaaaaaaaaaaa",)}, id="roster"),
        pytest.param({"policy_hash": "another"}, id="policy"),
        pytest.param({"code_version": "another"}, id="code version"),
        pytest.param({"is_latch_full": True}, id="a full latch"),
    ],
)
def test_all_that_decides_is_in_the_digest(week, changed):
    gathered, _ = gather(week.context, week.rollout, week.wave, gate=Gate.SHADOW)
    digests = {each.digest for each in (gathered, replace(gathered), replace(gathered, **changed))}
    assert len(digests) == 2


def contract_of(done: Evaluation) -> tuple[str, str]:
    """Return the verdict and the sentence of an evaluation's contract check."""
    assert done.result is not None
    checks = orjson.loads(done.result)["checks"]
    (found,) = (each for each in checks if each["check"] == "contract")
    return found["verdict"], found["sentence"]


def test_records_without_an_environment_leave_the_contract_without_data(week):
    assert contract_of(week.evaluate())[0] == Verdict.WITHIN
    now, week.calendar.now = week.calendar.now, week.calendar.now - timedelta(hours=6)
    nobody = {"deployment.environment.name": ""}
    prompts = list(week.prompts(week.today, per_owner=1))[:3]
    for prompt in prompts:
        week.host.send(logs(prompt.events(), resource=nobody))
    week.calendar.now = now

    done = week.evaluate()

    verdict, sentence = contract_of(done)
    assert verdict == Verdict.NO_DATA
    assert "of 102 records of the last day with prompts; 99 % is asked for" in sentence
    assert done.verdict == Verdict.NO_DATA


def test_a_week_of_nothing_but_quarantined_records_is_no_data(store):
    life = Life.begin(store)
    nobody = {"service.version": ""}
    for _ in range(2):
        day = life.today + timedelta(days=1)
        life.live(1, change=lambda _: None)
        life.host.send(logs(Prompt("p-1", [], day_start(day)).events(), resource=nobody))
    done = life.evaluate()
    assert contract_of(done)[0] == Verdict.NO_DATA
    assert done.verdict == Verdict.NO_DATA
