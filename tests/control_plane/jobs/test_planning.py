"""Plans on the environment's own days: which days, for which gate, and what they cannot say."""

from dataclasses import replace

import orjson
import pytest

from control_plane.commands.cohorts import CohortChange, set_cohort_mode
from control_plane.commands.plans import PlanRequest, request_plan
from control_plane.errors import RuleViolated, StateConflict
from control_plane.jobs.planning import make_plan
from control_plane.state import Plan, PlanStatus
from reducer.vocabulary import Gate, Mode
from tests.control_plane.lives import Life
from tests.control_plane.worlds import ENVIRONMENT, GUARD, OPERATOR


@pytest.fixture
def week(store):
    """A life in shadow with seven complete days."""
    life = Life.begin(store)
    life.live(7)
    return life


def ask(life: Life, **request) -> Plan:
    asked = PlanRequest(placebo_waves=100, **request)
    return request_plan(life.context, ENVIRONMENT, GUARD, request=asked, actor=OPERATOR)


def made(life: Life, **request) -> Plan:
    asked = ask(life, **request)
    life.work()
    found = life.context.plans.plan(ENVIRONMENT, GUARD, asked.id)
    assert found is not None
    return found


def result_of(plan: Plan):
    assert plan.result is not None, plan.sentence
    return orjson.loads(plan.result)


def test_in_shadow_the_warn_gate_is_planned_by_what_the_policy_says(week):
    plan = made(week)
    assert (plan.status, plan.gate, plan.shares_bps, plan.days) == (
        PlanStatus.DONE,
        Gate.WARN,
        (8000,),
        (7,),
    )
    result = result_of(plan)
    assert result["baseline"]["wave"] == 1
    assert len(result["baseline"]["days"]) == 7
    (wave,) = result["waves"]
    assert (wave["owners"], wave["treated"]) == (24, 19)
    assert "19 of 24 owners" in str(plan.sentence)


def test_shares_and_lengths_are_planned_each(week):
    result = result_of(made(week, shares_bps=(5000, 2500), days=(7, 3)))
    planned = [(wave["days"], wave["share_bps"]) for wave in result["waves"]]
    assert planned == [(3, 2500), (3, 5000), (7, 2500), (7, 5000)]


def test_more_owners_or_days_never_lower_the_power(week):
    result = result_of(made(week, shares_bps=(2500, 5000)))
    few, many = ({each["metric"]: each for each in wave["metrics"]} for wave in result["waves"])
    assert few.keys() == many.keys() >= {"cancellation", "tokens"}
    for metric, each in many.items():
        assert each["power"] >= few[metric]["power"]


def test_in_warn_the_enforce_gate_is_planned_on_the_warned(week):
    week.promote(Mode.WARN)
    week.live(8)
    plan = made(week)
    assert (plan.gate, plan.shares_bps) == (Gate.ENFORCE, (500,))
    (wave,) = result_of(plan)["waves"]
    assert (wave["owners"], wave["treated"]) == (19, 0)
    assert "too few owners to reckon with" in str(plan.sentence)


def test_fewer_days_than_planned_are_no_ground(store):
    life = Life.begin(store)
    life.live(3)
    plan = made(life)
    assert plan.status is PlanStatus.FAILED
    assert plan.sentence == (
        "a plan for 7 days rests on as many complete days before the wave; there are 3"
    )
    assert plan.result is None


def test_a_plan_is_made_once(week):
    plan = made(week)
    assert make_plan(week.context, ENVIRONMENT, GUARD, plan.id) is None


def test_one_plan_at_a_time(week):
    first = ask(week)
    with pytest.raises(StateConflict, match=f"plan {first.id} is still being made"):
        ask(week)
    week.work()
    assert ask(week).id == first.id + 1


def test_a_worker_that_starts_late_makes_the_plan_that_has_no_job(week):
    asked = ask(week)
    week.context.jobs.release(ENVIRONMENT)
    week.work()
    found = week.context.plans.plan(ENVIRONMENT, GUARD, asked.id)
    assert found is not None
    assert found.status is PlanStatus.DONE


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        pytest.param({"shares_bps": (10_000,)}, "treats everybody", id="everybody"),
        pytest.param({"shares_bps": (500, 500)}, "names a value twice", id="a share twice"),
        pytest.param({"days": (7, 7)}, "names a value twice", id="a length twice"),
    ],
)
def test_a_plan_that_compares_nothing_is_refused(week, request_, words):
    with pytest.raises(RuleViolated, match=words):
        ask(week, **request_)


def test_a_policy_that_holds_nobody_back_has_no_wave_to_plan(week):
    policies = week.context.policies
    base = replace(policies.base, holdback_bps=0)
    week.context = replace(week.context, policies=replace(policies, base=base))
    with pytest.raises(RuleViolated, match="treats everybody"):
        ask(week)


def test_a_rollout_that_is_off_has_no_plan(week):
    set_cohort_mode(
        *(week.context, ENVIRONMENT, GUARD, "everyone"),
        change=CohortChange(mode=Mode.OFF),
        actor=OPERATOR,
        reason="because a test needs it",
    )
    with pytest.raises(StateConflict, match="is off"):
        ask(week)
