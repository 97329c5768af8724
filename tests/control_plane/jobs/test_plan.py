"""Plans on the environment's own days: their days, their gate, and their limits."""

from dataclasses import replace

import orjson
import pytest

from guardwave.control_plane.commands.cohorts import CohortChange, set_cohort_mode
from guardwave.control_plane.commands.plans import PlanRequest, request_plan
from guardwave.control_plane.core.errors import RuleViolated, StateConflict
from guardwave.control_plane.core.state import Plan, PlanStatus
from guardwave.control_plane.jobs.plan import fail_plan, find_plan_baseline, make_plan
from guardwave.control_plane.jobs.worker import requeue_pending
from guardwave.control_plane.stores.jobs import JobKind
from guardwave.reducer.rollout.policy import MinimumData
from guardwave.reducer.vocabulary import Gate, Mode
from tests.support.hosts import Prompt
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD, OPERATOR


@pytest.fixture
def week(store):
    """A life in shadow with seven complete days."""
    life = Life.begin(store)
    life.live(7)
    return life


def ask(life: Life, **request) -> Plan:
    asked = PlanRequest(placebo_waves=100, **request)
    return request_plan(life.context, ENVIRONMENT, GUARD, request=asked, actor=OPERATOR)


def make(life: Life, **request) -> Plan:
    found = make_plan(life.context, ENVIRONMENT, GUARD, ask(life, **request).id)
    assert found is not None
    assert life.context.plans.plan(ENVIRONMENT, GUARD, found.id) == found
    return found


def result_of(plan: Plan):
    assert plan.result is not None, plan.sentence
    return orjson.loads(plan.result)


def test_in_shadow_the_warn_gate_is_planned_by_what_the_policy_says(week):
    plan = make(week)
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


def test_every_share_and_length_is_planned(week):
    result = result_of(make(week, shares_bps=(5000, 2500), days=(7, 3)))
    planned = [(wave["days"], wave["share_bps"]) for wave in result["waves"]]
    assert planned == [(3, 2500), (3, 5000), (7, 2500), (7, 5000)]


def test_placebo_waves_run_the_gate_itself_on_the_same_owners(week):
    (wave,) = result_of(make(week, shares_bps=(2500,)))["waves"]
    placebo = wave["placebo"]
    assert placebo["waves"] == 100
    assert {row["metric"] for row in placebo["metrics"]} >= {"cancellation", "tokens", "turns"}
    # Six treated owners are too little data for a verdict, whatever the formula says.
    assert (placebo["power"], placebo["is_weak"]) == (0.0, True)
    assert all(row["false_promotion"] == 0.0 for row in placebo["metrics"])


def test_the_same_days_give_the_same_plan(week):
    first, second = (make(week, shares_bps=(2500,)) for _ in range(2))
    assert result_of(first) == result_of(second)


def test_the_sentence_of_a_plan_reports_placebo_waves_and_the_risk_of_the_draw(week):
    plan = make(week, shares_bps=(2500,))
    (wave,) = result_of(plan)["waves"]
    assert plan.sentence is not None
    assert plan.sentence.startswith(wave["placebo"]["sentence"])
    assert plan.sentence.endswith(wave["unseen"]["sentence"])


def test_the_row_of_a_metric_says_when_its_power_leaves_out_minimum_data(week):
    plan = make(week, shares_bps=(2500,))
    (wave,) = result_of(plan)["waves"]
    rows = {row["metric"]: row for row in wave["metrics"]}
    assert rows["tokens"]["power"] > 0.9
    assert rows["tokens"]["lacks_data"] == 1.0
    remark = (
        "power and owners needed in closed form leave out minimum data, which 100 % of draws lack, "
        "such as 6 owners with data in warned (30 needed), 6.0 effective owners in warned (10 "
        "needed); the gate would call them unproven"
    )
    assert rows["tokens"]["remark"] == remark
    assert " Of " in str(plan.sentence)
    assert remark.partition(" (10")[0] in str(plan.sentence)


def test_the_row_of_a_metric_with_enough_data_has_no_remark(week):
    policies = week.context.policies
    least = MinimumData(1, 1.0, 1.0, 0.0)
    base = replace(policies.base, minimum_data=least)
    week.context = replace(week.context, policies=replace(policies, base=base))
    plan = make(week, shares_bps=(2500,))
    (wave,) = result_of(plan)["waves"]
    assert {(row["lacks_data"], row["remark"]) for row in wave["metrics"]} == {(0.0, None)}
    assert "closed form" not in str(plan.sentence)


def test_a_plan_says_how_often_its_draw_would_miss_harm_in_few_owners(week):
    few, many = result_of(make(week, shares_bps=(2500, 9500)))["waves"]
    # One owner of 24 carries it: a draw of n misses it with the chance (24 - n) / 24.
    assert (few["treated"], few["unseen"]["carriers"]) == (6, 1)
    assert few["unseen"]["chance"] == pytest.approx(18 / 24)
    assert (few["unseen"]["treated_needed"], few["unseen"]["is_small"]) == (22, True)
    assert (many["treated"], many["unseen"]["is_small"]) == (22, False)
    assert "too small to see harm in few owners" in few["unseen"]["sentence"]
    assert "too small" not in many["unseen"]["sentence"]


def test_beyond_half_of_the_owners_there_are_no_placebo_waves(week):
    (wave,) = result_of(make(week))["waves"]
    assert (wave["share_bps"], wave["placebo"]) == (8000, None)


def test_more_owners_or_days_never_lower_the_power(week):
    result = result_of(make(week, shares_bps=(2500, 5000)))
    few, many = ({row["metric"]: row for row in wave["metrics"]} for wave in result["waves"])
    assert few.keys() == many.keys() >= {"cancellation", "tokens"}
    for metric, row in many.items():
        assert row["power"] >= few[metric]["power"]


def cancelled_by_some(prompt: Prompt) -> Prompt:
    """Let every fourth owner cancel all that it starts."""
    owner = int(prompt.prompt_id.partition("/")[0].rpartition("-")[2])
    return prompt if owner % 4 else replace(prompt, outcome="cancelled")


def test_declared_looks_share_alpha_so_that_more_of_them_need_more_owners(store):
    life = Life.begin(store)
    life.live(7, change=cancelled_by_some)
    once, four = (result_of(make(life, shares_bps=(2500,), looks=looks)) for looks in (1, 4))
    assert four["alpha"] == once["alpha"] / 4
    few, many = (
        next(row for row in result["waves"][0]["metrics"] if row["metric"] == "cancellation")
        for result in (once, four)
    )
    assert many["owners_needed"] > few["owners_needed"]
    assert many["power"] < few["power"]


def test_in_warn_the_enforce_gate_is_planned_on_the_warned(week):
    week.promote(Mode.WARN)
    week.live(8)
    plan = make(week)
    assert (plan.gate, plan.shares_bps) == (Gate.ENFORCE, (500,))
    (wave,) = result_of(plan)["waves"]
    assert (wave["owners"], wave["treated"]) == (19, 0)
    assert (wave["placebo"]["power"], wave["unseen"]) == (None, None)
    assert plan.sentence == "5 % of 19 owners treats nobody."


def test_fewer_days_than_planned_are_no_baseline(store):
    life = Life.begin(store)
    life.live(3)
    plan = make(life)
    assert plan.status is PlanStatus.FAILED
    assert plan.sentence == (
        "a plan for 7 days rests on as many complete days before the wave; there are 3"
    )
    assert plan.result is None


def test_the_week_before_the_quiet_days_takes_noise_out_of_placebo_waves(week):
    plan = ask(week, days=(3,))
    ground = find_plan_baseline(week.context, week.rollout, plan)
    assert ground is not None
    assert ground.quiet_days(3).baseline is None
    week.live(4)
    ground = find_plan_baseline(week.context, week.rollout, plan)
    assert ground is not None
    quiet = ground.quiet_days(3)
    assert quiet.baseline is not None
    assert (len(quiet.baseline.days), quiet.days) == (7, 3)
    assert (quiet.totals["started"] == 6).all()
    assert (quiet.baseline.owners["started"] == 14).all()


def test_a_plan_is_made_once(week):
    plan = make(week)
    assert make_plan(week.context, ENVIRONMENT, GUARD, plan.id) is None


def test_one_plan_at_a_time(week):
    first = ask(week)
    with pytest.raises(StateConflict, match=f"plan {first.id} is still being made"):
        ask(week)
    make_plan(week.context, ENVIRONMENT, GUARD, first.id)
    assert ask(week).id == first.id + 1


def test_a_pending_plan_without_a_job_is_queued_again(week):
    asked = ask(week)
    week.context.jobs.release(ENVIRONMENT)
    assert requeue_pending(week.context, ENVIRONMENT) == 1
    job = week.context.jobs.take(ENVIRONMENT)
    assert job is not None
    assert (job.kind, job.number) == (JobKind.PLAN, asked.id)


def test_a_plan_that_cannot_be_made_fails_with_words(week):
    asked = ask(week)
    fail_plan(week.context, ENVIRONMENT, GUARD, asked.id, why="ValueError; see the log")
    fail_plan(week.context, ENVIRONMENT, GUARD, asked.id, why="again")
    (kept,) = week.context.plans.newest(ENVIRONMENT, GUARD, at_most=5)
    assert kept.sentence == "it could not be made: ValueError; see the log"


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
