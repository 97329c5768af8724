"""Metric points and flag evaluations of a Resource whose assignment id is forged: rejected."""

from datetime import timedelta

import pytest

from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.vocabulary import Cohort, Mode
from tests.support.hosts import Event, assignment_for, issue_id, logs, partial_of, pseudonym_in
from tests.support.latches import is_latched
from tests.support.otlp.bodies import any_value, counter_request
from tests.support.worlds import ENVIRONMENT, GUARD, NOW

AT = NOW - timedelta(hours=2)
AT_NS = int(AT.timestamp()) * 10**9
FORGED = "a1.forged"
EVALUATION = Event(
    "feature_flag.evaluation",
    AT,
    {"feature_flag.key": f"agent.guard.{GUARD}", "feature_flag.result.variant": "shadow"},
)


@pytest.fixture
def phase():
    return Mode.ENFORCE


def under(request, *ids: str):
    batches = getattr(request, "resource_metrics", None) or request.resource_logs
    batches[0].resource.attributes.add(
        key="agent.guard.assignment.id", value=any_value("~".join(ids))
    )
    return request


def executions(**labels: str):
    """Return a count of three failed tool executions."""
    attributes = {"name": GUARD, "mode": "shadow", "execution.status": "error", **labels}
    return counter_request(
        {f"agent.guard.{key}": word for key, word in attributes.items()},
        metric="agent.guard.tool.executions",
        as_int=3,
        start_time_unix_nano=AT_NS - 10**9,
        time_unix_nano=AT_NS,
    )


def counted(context) -> int:
    return sum(context.evidence.counters(ENVIRONMENT, AT.date()).values())


VOLUME = {"metrics": 3, "logs": 1}
ITEMS = [
    pytest.param(executions, "metrics", id="a point"),
    pytest.param(lambda: logs([EVALUATION]), "logs", id="a flag evaluation"),
]


@pytest.mark.parametrize(("item", "kind"), ITEMS)
@pytest.mark.parametrize("place", ["alone", "before a valid one", "after a valid one"])
def test_it_is_rejected_and_counted_under_a_forged_id(context, host, item, kind, place):
    valid = assignment_for(context, "owner-1")[1]
    ids = {
        "alone": (FORGED,),
        "before a valid one": (FORGED, valid),
        "after a valid one": (valid, FORGED),
    }[place]
    for _ in range(2):
        rejected, message = partial_of(host.send(under(item(), *ids)), kind)
        assert rejected == 1
        assert message.startswith("forged_assignment: agent.guard.assignment.id is not one")
    health = context.evidence.health(ENVIRONMENT)
    assert (health["refused:forged_assignment"], health["refused"]) == (1, 1)
    assert counted(context) == 0


@pytest.mark.parametrize(("item", "kind"), ITEMS)
def test_it_is_volume_where_several_owners_share_a_process(context, host, item, kind):
    ids = [assignment_for(context, owner)[1] for owner in ("owner-1", "owner-2")]
    assert partial_of(host.send(under(item(), *ids)), kind) == (0, "")
    assert counted(context) == VOLUME[kind]
    assert context.evidence.days(ENVIRONMENT) == (AT.date(),)


def test_a_forged_mode_is_rejected_though_the_rest_of_the_id_is_ours(context, host):
    pseudonym = pseudonym_in(context, "owner-1")
    ours = issue_id(context, Assignment(GUARD, pseudonym, 1, Cohort.EVERYONE, Mode.SHADOW, 1))
    forged = ours.replace(".shadow.", ".enforce.")
    assert forged != ours
    assert partial_of(host.send(under(executions(), forged)), "metrics")[0] == 1
    assert counted(context) == 0
    assert partial_of(host.send(under(executions(), ours)), "metrics") == (0, "")
    assert counted(context) == 3


def test_a_label_that_names_a_person_is_counted_under_a_forged_id_and_never_latches(context, host):
    for _ in range(2):
        host.send(under(executions(**{"error.type": "x"}), FORGED))
    health = context.evidence.health(ENVIRONMENT)
    assert health["unvouched_violation:sensitive_field"] == 1
    assert not is_latched(context)
