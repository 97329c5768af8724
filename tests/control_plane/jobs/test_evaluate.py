"""Gate evaluations: one at the declared look, immutable, from the evidence they name alone."""

from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from typing import Any

import orjson
import pytest

from guardwave.control_plane.commands.cohorts import CohortChange, set_cohort_mode
from guardwave.control_plane.commands.evaluations import request_evaluation
from guardwave.control_plane.commands.rollback import roll_back
from guardwave.control_plane.core.clock import NANOSECONDS, Clock, to_ns
from guardwave.control_plane.core.errors import RuleViolated, StateConflict
from guardwave.control_plane.core.state import SYSTEM, Evaluation, EvaluationStatus, PromotionStatus
from guardwave.control_plane.jobs.evaluate import evaluate_gate, request_due_evaluations
from guardwave.control_plane.jobs.gather import is_older_than_evidence
from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.rollout.days import day_start
from guardwave.reducer.vocabulary import Cohort, Gate, Mode, Verdict
from tests.support.hosts import Calendar, Prompt, issue_id, logs, pseudonym_in
from tests.support.lives import BEGAN, HOLDER, Life
from tests.support.worlds import ENVIRONMENT, GUARD, OPERATOR, WHY, context_over


@pytest.fixture
def life(store):
    return Life.begin(store)


@pytest.fixture
def week(life):
    """A life in shadow with seven complete days."""
    life.live(7)
    return life


def evaluations(life: Life):
    return life.context.gates.evaluations(life.environment, GUARD)


def test_the_declared_look_asks_for_exactly_one_evaluation(life):
    for _ in range(6):
        life.live(1)
        life.work()
    assert evaluations(life) == ()
    for _ in range(3):
        life.live(1)
        life.work()
    (found,) = evaluations(life)
    assert (found.actor, found.status, found.verdict) == (SYSTEM, EvaluationStatus.DONE, "within")
    assert len(found.days_used) == 7


def test_a_worker_that_starts_late_asks_for_what_is_due(week):
    assert request_due_evaluations(week.context, ENVIRONMENT)[0].wave == 1
    assert request_due_evaluations(week.context, ENVIRONMENT) == ()


def test_a_quiet_week_of_shadow_is_within(week):
    done = week.evaluate()
    assert (done.gate, done.verdict) == (Gate.SHADOW, Verdict.WITHIN)
    assert done.sentence.startswith("Within: 7 of 7 complete days")


def test_six_days_prove_nothing_yet(life):
    life.live(6)
    done = life.evaluate()
    assert done.verdict == Verdict.UNPROVEN
    assert "6 of 7 complete days" in done.sentence


def test_days_after_the_look_are_not_used(week):
    first = week.evaluate()
    week.live(2)
    second = week.evaluate()
    assert second.days_used == first.days_used


def test_a_week_without_telemetry_is_no_data(life):
    life.live(7, change=lambda _: None)
    assert life.evaluate().verdict == Verdict.NO_DATA


def test_an_evaluation_stays_as_it_was_made(week):
    done = week.evaluate()
    week.queue(done)
    week.live(1)
    week.work()
    assert week.evaluation(done.id) == done
    fence = week.context.jobs.lease(ENVIRONMENT, HOLDER)
    assert evaluate_gate(week.context, ENVIRONMENT, GUARD, done.id, fence=fence) is None
    other = replace(done, verdict="beyond")
    assert not week.context.gates.finish_evaluation(ENVIRONMENT, other, fence=fence)
    assert week.evaluation(done.id) == done


def test_the_digest_covers_the_result_and_the_result_the_evidence(week):
    done = week.evaluate()
    assert done.result is not None
    assert done.digest == sha256(done.result.encode()).hexdigest()
    first = decoded_result(done)
    assert first["policy_hash"] == week.context.policies.hash
    again = week.evaluate()
    assert decoded_result(again)["evidence_digest"] == first["evidence_digest"]
    week.host.send_prompts(late_prompt(week))
    revised = week.evaluate()
    assert decoded_result(revised)["evidence_digest"] != first["evidence_digest"]


def late_prompt(life: Life, name: str = "late") -> Prompt:
    """Return a prompt of yesterday, which is sealed."""
    (first, *_) = life.prompts(life.today - timedelta(days=1))
    return replace(first, prompt_id=name)


def test_an_evaluation_whose_wave_is_over_fails_with_words(week):
    asked = request_evaluation(week.context, ENVIRONMENT, GUARD, gate=Gate.SHADOW, actor=OPERATOR)
    promoted = week.promote(Mode.WARN)
    assert promoted.status is PromotionStatus.DONE
    done = week.evaluation(asked.id)
    # Asked for before the promotion, it was made first.
    assert done.status is EvaluationStatus.DONE
    stale = request_evaluation(week.context, ENVIRONMENT, GUARD, gate=Gate.WARN, actor=OPERATOR)
    roll_back(week.context, ENVIRONMENT, actor=OPERATOR, reason=WHY)
    week.work()
    failed = week.evaluation(stale.id)
    assert (failed.status, failed.sentence) == (
        EvaluationStatus.FAILED,
        "the wave it was asked for is over; ask again",
    )


@pytest.mark.parametrize(
    ("age", "status"),
    [
        pytest.param(timedelta(days=119), EvaluationStatus.DONE, id="evidence is kept"),
        pytest.param(timedelta(days=121), EvaluationStatus.FAILED, id="evidence may be gone"),
    ],
)
def test_a_wave_older_than_its_evidence_is_evaluated_on_no_later_days(week, age, status):
    week.calendar.now = BEGAN + age
    due = request_due_evaluations(week.context, ENVIRONMENT)
    assert len(due) == (status is EvaluationStatus.DONE)
    done = week.evaluate()
    assert done.status is status
    if status is EvaluationStatus.FAILED:
        assert done.sentence == "the wave is older than its evidence; start a new one"


def test_the_age_of_a_wave_is_counted_in_real_time(week):
    started = to_ns(week.calendar.now)
    clock = Clock(
        wall_ns=lambda: started + 3600 * NANOSECONDS,
        wall_origin_ns=started,
        moment_origin_ns=started,
        speed=86_400.0,
    )
    context = context_over(week.store, clock=clock)
    assert clock.now() > BEGAN + timedelta(days=3600)
    assert not is_older_than_evidence(context, week.wave)


def test_a_gate_of_another_phase_is_not_evaluated(week):
    with pytest.raises(RuleViolated, match="the phase is shadow, its gate is shadow"):
        request_evaluation(week.context, ENVIRONMENT, GUARD, gate=Gate.ENFORCE, actor=OPERATOR)


def test_a_violation_during_the_wave_is_beyond(week):
    (prompt, *_) = week.prompts(week.today - timedelta(days=1))
    event = prompt.transition(1, "tracked", terminal__status="cancelled")
    week.host.send(logs([event]))
    assert week.rollout.wave == 2
    # The first one closed the wave that it happened in; under its latch a second one counts.
    week.calendar.now += timedelta(minutes=1)
    again = replace(prompt, prompt_id="again")
    week.host.send(logs([again.transition(1, "tracked", terminal__status="cancelled")]))
    assert week.rollout.wave == 2
    done = week.evaluate()
    assert done.verdict == Verdict.BEYOND
    assert "cancelled_counted" in done.sentence or "invariant" in done.sentence


def test_the_violation_that_opened_a_wave_does_not_count_in_it(week):
    (prompt, *_) = week.prompts(week.today - timedelta(days=1))
    week.host.send(logs([prompt.transition(1, "tracked", terminal__status="cancelled")]))
    week.live(8)
    assert week.evaluate().verdict == Verdict.WITHIN


def decoded_result(done: Evaluation) -> dict[str, Any]:
    """Return an evaluation's result, read again from its text."""
    assert done.status is EvaluationStatus.DONE, done.sentence
    assert done.result is not None
    found = orjson.loads(done.result)
    assert isinstance(found, dict)
    return found


def metrics(life: Life) -> bytes:
    """Return the metrics of an evaluation made now, as stored."""
    found = decoded_result(life.evaluate())["metrics"]
    assert found
    return orjson.dumps(found)


@pytest.fixture
def enforced(store):
    """A life whose first enforce wave has seven complete days."""
    life = Life.begin(store)
    life.live(7)
    assert life.promote(Mode.WARN).status is PromotionStatus.DONE
    assert life.promote(Mode.ENFORCE).status is PromotionStatus.DONE
    life.live(8)
    return life


def test_adding_only_cancelled_prompts_changes_no_completion_estimate(enforced):
    before = decoded_result(enforced.evaluate())["metrics"]
    day = enforced.today - timedelta(days=1)
    for at, prompt in enumerate(enforced.prompts(day)):
        cancelled = replace(prompt, prompt_id=f"cancelled-{at}", outcome="cancelled")
        if at % 3:
            enforced.host.send_prompts(cancelled)
    after = decoded_result(enforced.evaluate())["metrics"]
    named = [{row["metric"]: row for row in rows} for rows in (before, after)]
    assert named[0]["completion"] == named[1]["completion"]
    assert named[0]["completion"]["estimate"] is not None
    assert named[0]["cancellation"] != named[1]["cancellation"]
    assert named[0]["turns"]["reference_trials"] < named[1]["turns"]["reference_trials"]


def test_evidence_of_another_environment_changes_no_metric(store, enforced):
    before = metrics(enforced)
    other = Life.begin(store, environment="other", calendar=Calendar(enforced.calendar.now))
    other.live(2)
    assert metrics(enforced) == before


def test_evidence_of_another_wave_changes_no_metric(enforced):
    before = metrics(enforced)
    at = day_start(enforced.today - timedelta(days=1)) + timedelta(hours=9)
    for number, owner in enumerate(enforced.owners):
        pseudonym = pseudonym_in(enforced.context, owner)
        for wave, cohort in ((1, Cohort.EVERYONE), (2, Cohort.WARNED), (4, Cohort.ENFORCED)):
            assignment = Assignment(GUARD, pseudonym, wave, cohort, Mode.WARN, 1)
            id_of_wave = issue_id(enforced.context, assignment)
            enforced.host.send_prompts(Prompt(f"other-{wave}-{number}", [id_of_wave], at))
    assert metrics(enforced) == before


def test_evidence_of_owners_that_are_on_no_roster_changes_no_metric(enforced):
    before = metrics(enforced)
    at = day_start(enforced.today - timedelta(days=1)) + timedelta(hours=9)
    for number in range(30):
        pseudonym = pseudonym_in(enforced.context, f"stranger-{number}")
        for cohort in (Cohort.OUTSIDE, Cohort.INELIGIBLE):
            assignment = Assignment(GUARD, pseudonym, 0, cohort, Mode.SHADOW, 1)
            stranger_id = issue_id(enforced.context, assignment)
            enforced.host.send_prompts(
                Prompt(f"{cohort}-{number}", [stranger_id], at, outcome="failed")
            )
    assert metrics(enforced) == before


def test_an_evaluation_is_asked_for_only_while_a_wave_is_open(week):
    week.promote(Mode.WARN)
    week.promote(Mode.ENFORCE)
    set_cohort_mode(
        week.context,
        ENVIRONMENT,
        GUARD,
        "enforced",
        change=CohortChange(mode=Mode.WARN),
        actor=OPERATOR,
        reason=WHY,
    )
    with pytest.raises(StateConflict, match=r"no wave is open.*POST .*waves"):
        request_evaluation(week.context, ENVIRONMENT, GUARD, gate=Gate.WARN, actor=OPERATOR)
