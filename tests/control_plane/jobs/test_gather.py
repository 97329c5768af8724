"""Gathered evidence: what belongs to the wave of a gate, and what belongs to others."""

from dataclasses import replace
from datetime import timedelta

import orjson
import pytest

from guardwave.analysis.frames.evidence import Share, WaveEvidence
from guardwave.control_plane.commands.rollback import FoundViolation, latch
from guardwave.control_plane.core.state import Evaluation
from guardwave.control_plane.jobs.conclude import evidence_of
from guardwave.control_plane.jobs.decide import decide_overdue
from guardwave.control_plane.jobs.gather import gather
from guardwave.control_plane.jobs.owner_day_table import OwnerDayTable
from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.rollout.days import day_start
from guardwave.reducer.rollout.state import gate_for
from guardwave.reducer.vocabulary import Cohort, Gate, Invariant, Mode, Verdict
from tests.support.hosts import Prompt, issue_id, logs, pseudonym_in
from tests.support.lives import Life
from tests.support.worlds import GUARD

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


def switches(life: Life) -> int:
    evidence = evidence_in(life)
    return evidence.violations.get(Invariant.TREATMENT_SWITCHED, 0)


def send_switched_prompt(life: Life, *, guard: str = GUARD, wave: int = 1) -> None:
    """Send a prompt of yesterday that starts under an id of shadow and ends under one of warn."""
    prompt = Prompt("p-1", [], day_start(life.today - timedelta(days=1)) + timedelta(hours=9))
    pseudonym = pseudonym_in(life.context, life.owners[0])
    for mode, event in ((Mode.SHADOW, prompt.start()), (Mode.WARN, prompt.end())):
        assignment = Assignment(guard, pseudonym, wave, Cohort.EVERYONE, mode, 1)
        attributes = {
            **event.attributes,
            "agent.guard.assignment.id": issue_id(life.context, assignment),
        }
        life.host.send(logs([replace(event, attributes=attributes)]))


def test_a_prompt_that_switched_its_mode_counts_against_its_wave(week):
    send_switched_prompt(week)
    assert switches(week) == 1
    assert week.evaluate().verdict == Verdict.BEYOND


def test_a_switched_prompt_that_was_recorded_as_a_violation_counts_once(week):
    send_switched_prompt(week)
    rollout, wave, gate = week.rollout, week.wave, gate_for(week.rollout.phase)
    assert gate is not None
    week.calendar.now += timedelta(minutes=3)
    decide_overdue(week.context, rollout.environment)
    recorded = week.context.incidents.violations(rollout.environment)
    assert [violation.invariant for violation in recorded] == [Invariant.TREATMENT_SWITCHED]

    evidence = evidence_of(gather(week.context, rollout, wave, gate=gate).gathered)
    assert evidence.violations == {Invariant.TREATMENT_SWITCHED: 1}


@pytest.mark.parametrize(
    ("guard", "counted"),
    [
        pytest.param(GUARD, 1, id="of the guard, so that the owner-day may be its own"),
        pytest.param(OTHER_GUARD, 2, id="of another guard"),
    ],
)
def test_a_recorded_switch_counts_with_or_without_one_in_an_owner_day(week, guard, counted):
    rollout, wave, gate = week.rollout, week.wave, gate_for(week.rollout.phase)
    assert gate is not None
    broken = FoundViolation("p-2", Invariant.TREATMENT_SWITCHED, guard, Mode.WARN, 1)
    latch(week.context, rollout.environment, [broken])
    evidence = evidence_of(gather(week.context, rollout, wave, gate=gate).gathered)
    assert evidence.violations == {Invariant.TREATMENT_SWITCHED: 1}

    send_switched_prompt(week)
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
    send_switched_prompt(week, **whose)
    assert switches(week) == 0
    assert week.evaluate().verdict == Verdict.WITHIN


def test_a_new_version_in_the_midst_of_a_prompt_is_no_switch(week):
    prompt = next(iter(week.prompts(week.today - timedelta(days=1))))
    prompt = replace(prompt, prompt_id="updated")
    week.host.send(logs([prompt.start()]))
    week.host.send(logs([prompt.end()], version="1.5.0"))
    assert switches(week) == 0


def test_a_switch_of_a_prompt_that_never_started_is_no_owner_day(week):
    before = evidence_in(week)
    at = day_start(week.today - timedelta(days=1)) + timedelta(hours=9)
    pseudonym = pseudonym_in(week.context, "a stranger")
    for sequence, mode in enumerate((Mode.SHADOW, Mode.WARN), start=1):
        assignment = Assignment(GUARD, pseudonym, 1, Cohort.EVERYONE, mode, 1)
        prompt = Prompt("p-1", [issue_id(week.context, assignment)], at)
        week.host.send(logs([prompt.transition(sequence, "tracked")]))
    after = evidence_in(week)
    assert after.owners.equals(before.owners)
    assert switches(week) == 1


@pytest.mark.parametrize(
    ("updated", "verdict"),
    [
        pytest.param(3, Verdict.WITHIN, id="fewer than one in a hundred"),
        pytest.param(4, Verdict.INVALID, id="one in a hundred"),
    ],
)
def test_prompts_of_a_version_that_is_not_pinned_count_against_purity(week, updated, verdict):
    prompts = list(week.prompts(week.today - timedelta(days=1)))[:updated]
    renamed = [replace(prompt, prompt_id=f"2.0 {prompt.prompt_id}") for prompt in prompts]
    events = [event for prompt in renamed for event in prompt.events()]
    week.host.send(logs(events, version="2.0.0"))

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
def test_the_digest_covers_everything_that_decides(week, changed):
    gathered, _ = gather(week.context, week.rollout, week.wave, gate=Gate.SHADOW)
    variants = (gathered, replace(gathered), replace(gathered, **changed))
    digests = {variant.digest for variant in variants}
    assert len(digests) == 2


def contract_of(done: Evaluation) -> tuple[str, str]:
    """Return the verdict and the sentence of an evaluation's contract check."""
    assert done.result is not None
    checks = orjson.loads(done.result)["checks"]
    (found,) = (check for check in checks if check["check"] == "contract")
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
