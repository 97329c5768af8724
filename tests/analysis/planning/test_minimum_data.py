"""Minimum data before a wave: what random draws lack, in the sentences of the gate."""

from dataclasses import replace

import pandas as pd
import pytest

from guardwave.analysis.planning.minimum_data import plan_data
from guardwave.reducer.rollout.policy import MinimumData
from guardwave.reducer.vocabulary import Gate, Metric
from tests.support.frames.samples import POLICY, simulated_totals

# About 60 prompts an owner; one in a hundred is disrupted, and the margin is half a point.
OWNERS = simulated_totals(treated=0, control=400)


def planned(share_bps: int, totals=OWNERS, policy=POLICY, **arguments):
    found = plan_data(totals, Gate.ENFORCE, policy=policy, share_bps=share_bps, **arguments)
    return {finding.metric: finding for finding in found}


def of_events(least: float):
    """Return a policy that needs a minimum of events alone."""
    return replace(POLICY, minimum_data=MinimumData(1, 1.0, 1.0, least))


def test_a_draw_of_fewer_owners_than_the_minimum_always_lacks_data():
    found = planned(500)
    assert {finding.short for finding in found.values()} == {1.0}
    lack = found[Metric.TOKENS].lack
    assert lack is not None
    assert lack.startswith("20 owners with data in enforced (30 needed)")


def test_a_draw_with_enough_of_everything_lacks_nothing():
    found = planned(2500)
    assert set(found) == {Metric.COMPLETION, Metric.DISRUPTION, Metric.TOKENS, Metric.TURNS}
    assert {(finding.short, finding.lack) for finding in found.values()} == {(0.0, None)}


def test_events_at_the_margin_are_those_of_the_owners_drawn():
    rate = OWNERS["disrupted"].sum() / OWNERS["started"].sum()
    expected = 40 * OWNERS["started"].mean() * (rate + 0.005)
    found = planned(1000, policy=of_events(float(expected)))
    # About half of the draws have fewer prompts than the mean draw.
    assert 0.3 < found[Metric.DISRUPTION].short < 0.7
    assert found[Metric.DISRUPTION].lack is not None
    assert "events to expect at the margin in enforced" in found[Metric.DISRUPTION].lack
    assert found[Metric.TOKENS].short == 0.0


@pytest.mark.parametrize("least", [pytest.param(10.0, id="ten"), pytest.param(40.0, id="forty")])
def test_a_larger_share_never_lacks_events_more_often(least):
    shorts = [
        planned(share, policy=of_events(least))[Metric.DISRUPTION].short
        for share in (250, 500, 1000, 2500)
    ]
    assert shorts == sorted(shorts, reverse=True)
    assert shorts[0] > shorts[-1]


def test_the_same_arguments_give_the_same_plan():
    assert planned(1000, policy=of_events(35.0)) == planned(1000, policy=of_events(35.0))


def test_owners_who_started_nothing_are_not_drawn():
    idle = OWNERS.head(100).assign(owner=[f"idle-{at}" for at in range(100)])
    counts = ["started", "cancelled", "completed", "disrupted", "tokens", "turns"]
    idle[counts] = 0
    assert planned(1000, totals=pd.concat([OWNERS, idle])) == planned(1000)


def test_a_draw_that_treats_nobody_has_no_plan():
    assert planned(500, totals=OWNERS.head(19)) == {}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        pytest.param({"gate": Gate.SHADOW}, "compares no cohorts", id="a gate without cohorts"),
        pytest.param({"share_bps": 0}, "share_bps is 0", id="a share of nothing"),
        pytest.param({"share_bps": 10_000}, "share_bps is 10000", id="a share of all"),
        pytest.param({"draws": 0}, "draws is 0", id="no draw"),
    ],
)
def test_an_impossible_plan_is_refused(changed, words):
    arguments = {"gate": Gate.ENFORCE, "share_bps": 500, "draws": 10} | changed
    gate = arguments.pop("gate")
    with pytest.raises(ValueError, match=words):
        plan_data(OWNERS, gate, policy=POLICY, **arguments)
