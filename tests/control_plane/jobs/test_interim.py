"""Looks for harm: their days, their share of alpha, and the effect of an alarm."""

from dataclasses import replace
from datetime import date, timedelta

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.analysis.frames.owner_totals import owner_totals
from guardwave.analysis.gate.alarms import AnyTimeLooks, ScheduledLooks, harm_alarms, information
from guardwave.control_plane.commands.cohorts import CohortChange, set_cohort_mode
from guardwave.control_plane.commands.harm_alarm import act_on_look
from guardwave.control_plane.core.state import SYSTEM, Action, HarmLook, MetricLook
from guardwave.control_plane.jobs.interim import due_look, look_for_harm, planned_information
from guardwave.control_plane.jobs.owner_day_table import OwnerDayTable
from guardwave.control_plane.stores.jobs import Job, JobKind
from guardwave.reducer.rollout.draw import treated_count
from guardwave.reducer.vocabulary import Cohort, Gate, Metric, Mode
from tests.support.frames.samples import PAIR, simulated_totals
from tests.support.hosts import Assigner, Prompt
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD, OPERATOR, WHY

OWNERS = 640
# Of 640 owners 32 are treated: enough to judge at all.
TREATED = treated_count(500, OWNERS)


@given(st.integers(7, 90), st.integers(1, 2000))
def test_looks_are_numbered_as_they_come_and_never_look_ahead(declared, complete):
    due, before = due_look(complete, declared), due_look(complete - 1, declared)
    assert due is not None
    assert due.days <= complete
    assert before is None or due == before or due.number == before.number + 1


@pytest.mark.parametrize(
    ("complete", "number", "days"),
    [
        pytest.param(1, 1, 1, id="first day"),
        pytest.param(7, 7, 7, id="last declared day"),
        pytest.param(13, 7, 7, id="within the week after"),
        pytest.param(14, 8, 14, id="a week after"),
        pytest.param(21, 9, 21, id="two weeks after"),
    ],
)
def test_a_look_comes_after_each_declared_day_and_each_week_after(complete, number, days):
    assert due_look(complete, 7) == (number, days)


def test_there_is_no_look_before_the_first_complete_day():
    assert due_look(0, 7) is None


def looks(life: Life):
    return life.context.incidents.harm_looks(ENVIRONMENT, GUARD)


def test_shadow_has_nobody_to_compare_and_no_look(store):
    life = Life.begin(store)
    life.live(2)
    life.work()
    assert looks(life) == ()


def test_too_few_owners_raise_no_alarm_and_say_why(store):
    life = Life.begin(store)
    life.live(1)
    life.promote(Mode.WARN)
    for _ in range(2):
        life.live(2, change=with_failures(life, Mode.WARN))
        life.work()
    (first, second) = looks(life)
    assert (first.number, first.days, second.number, second.days) == (1, 1, 3, 3)
    assert [metric.metric for metric in first.metrics] == [
        Metric.DISRUPTION,
        Metric.CANCELLATION,
        Metric.TOKENS,
        Metric.TURNS,
    ]
    assert not first.raised
    assert all("No alarm" in metric.sentence for metric in second.metrics)
    assert life.rollout.phase is Mode.WARN


def with_failures(life: Life, mode: Mode):
    """Let every second prompt in this mode fail."""

    def change(prompt: Prompt) -> Prompt:
        is_hit = prompt.mode is mode and hash(prompt.prompt_id) % 2 == 0
        return replace(prompt, outcome="failed") if is_hit else prompt

    return change


@pytest.fixture
def enforcing(store):
    """A life in enforce with enough owners to judge."""
    life = Life.begin(store, owners=OWNERS)
    life.live(3, per_owner=1)
    life.promote(Mode.WARN)
    life.promote(Mode.ENFORCE)
    return life


def live_badly(life: Life, days: int) -> None:
    """Let days pass on which half of the enforced owners' prompts fail."""
    assigner = Assigner(life.context, ENVIRONMENT)
    enforced = {owner for owner in life.owners if assigner.of(owner)[0].cohort is Cohort.ENFORCED}
    assert len(enforced) == TREATED

    def harm(prompt: Prompt) -> Prompt | None:
        owner = prompt.prompt_id.partition("/")[0]
        number = int(prompt.prompt_id.rpartition("/")[2])
        if owner in enforced and number % 2:
            return replace(prompt, outcome="failed")
        return prompt

    life.live(days, change=harm)


def test_an_alarm_lowers_enforce_to_warn_with_its_numbers_in_the_audit(enforcing):
    generation = enforcing.rollout.generation
    live_badly(enforcing, 3)
    enforcing.work()

    rollout = enforcing.rollout
    assert (rollout.phase, rollout.wave) == (Mode.WARN, 0)
    assert rollout.generation == generation + 1
    (look,) = looks(enforcing)
    assert look.lowered
    assert [alarm.metric for alarm in look.raised] == [Metric.COMPLETION]
    (entry, *_) = enforcing.context.environments.audit_entries(ENVIRONMENT, count=1)
    assert (entry["action"], entry["actor"]) == (Action.HARM_ALARM, SYSTEM.id)
    assert (entry["generation_before"], entry["generation_after"]) == (generation, generation + 1)
    reason = str(entry["reason"])
    assert reason.startswith("After 2 complete days of wave 3: Alarm about completion: -")
    assert "beyond the margin of -1.00 pp" in reason


def test_a_policy_may_leave_the_alarm_to_a_person(enforcing):
    policies = enforcing.context.policies
    base = replace(policies.base, alarms=replace(policies.base.alarms, lowers_enforce=False))
    enforcing.context = replace(enforcing.context, policies=replace(policies, base=base))
    live_badly(enforcing, 3)
    enforcing.work()
    assert enforcing.rollout.phase is Mode.ENFORCE
    (look,) = looks(enforcing)
    assert [alarm.metric for alarm in look.raised] == [Metric.COMPLETION]
    assert not look.lowered


def test_a_look_that_was_made_is_not_made_again(enforcing):
    enforcing.live(2, per_owner=1)
    enforcing.work()
    (look,) = looks(enforcing)
    wave = enforcing.wave.number
    assert look_for_harm(enforcing.context, ENVIRONMENT, GUARD, wave) is None
    enforcing.context.jobs.put(ENVIRONMENT, Job(JobKind.LOOK, GUARD, wave))
    enforcing.work()
    assert looks(enforcing) == (look,)


def test_a_look_at_a_wave_that_was_lowered_meanwhile_changes_nothing(enforcing):
    enforcing.live(2, per_owner=1)
    enforcing.work()
    (look,) = looks(enforcing)
    raised = MetricLook(Metric.TURNS, True, 2.0, 1.5, 1.1, "Alarm about turns: 2.00 times.")
    change = CohortChange(mode=Mode.SHADOW)
    set_cohort_mode(
        *(enforcing.context, ENVIRONMENT, GUARD, "enforced"),
        change=change,
        actor=OPERATOR,
        reason=WHY,
    )
    before = enforcing.rollout
    acted = act_on_look(enforcing.context, ENVIRONMENT, replace(look, number=2, metrics=(raised,)))
    assert not acted.lowered
    assert enforcing.rollout == before
    assert looks(enforcing) == (look, acted)


def totals_over(life: Life, count: int):
    """Return owner totals over the first `count` complete days of the wave."""
    days = [life.wave.opened_at.date() + timedelta(days=at) for at in range(1, count + 1)]
    rows = life.context.evidence.owner_days(ENVIRONMENT, GUARD, life.wave.number, days)
    return owner_totals(OwnerDayTable.of(rows).frame())


def alarm_of(look: HarmLook, metric: Metric) -> MetricLook:
    (found,) = [finding for finding in look.metrics if finding.metric is metric]
    return found


def test_declared_days_share_alpha_and_the_weeks_after_are_always_valid(enforcing):
    # The wave opened in the midst of the first of these days.
    enforcing.live(8, per_owner=1)
    enforcing.work()
    enforcing.live(7, per_owner=1)
    enforcing.work()
    week, fortnight = looks(enforcing)[-2:]
    assert (week.days, fortnight.days) == (7, 14)
    policy = enforcing.context.policies.of(ENVIRONMENT)
    margins = policy.margins[Gate.ENFORCE]
    totals = {days: totals_over(enforcing, days) for days in (7, 14)}
    planned = information(totals[7], PAIR, margins)
    for look, by in ((week, ScheduledLooks(7)), (fortnight, AnyTimeLooks(planned))):
        expected = harm_alarms(totals[look.days], PAIR, margins, policy=policy, looks=by)
        assert [metric.bound for metric in look.metrics] == [one.bound for one in expected]
    assert alarm_of(fortnight, Metric.COMPLETION).bound is not None


def test_a_metric_without_a_spread_so_far_is_planned_by_the_week_that_brings_one():
    first = simulated_totals(treated=60, control=240, seed=1).assign(day=date(2026, 11, 8))
    second = simulated_totals(treated=60, control=240, seed=2).assign(day=date(2026, 11, 15))
    rows = pd.concat([first.assign(disrupted=0), second])
    metrics = (Metric.DISRUPTION, Metric.TOKENS)
    ends = [date(2026, 11, 8), date(2026, 11, 15), date(2026, 11, 22)]
    planned = planned_information(rows, PAIR, metrics, ends=ends)
    whole = information(owner_totals(rows), PAIR, metrics)
    assert planned[Metric.DISRUPTION] == whole[Metric.DISRUPTION]
    assert planned[Metric.TOKENS] == information(owner_totals(first), PAIR, metrics)[Metric.TOKENS]
