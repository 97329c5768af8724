"""Content on a flag evaluation: a violation as on every event of the contract."""

from dataclasses import replace
from datetime import timedelta

import pytest

from guardwave.control_plane.ingest.model.otlp_values import Value
from guardwave.reducer.vocabulary import Invariant, Mode
from tests.support.hosts import Event, Host, assignment_for, logs, partial_of
from tests.support.latches import idle_violations, is_latched
from tests.support.otlp.bodies import any_value
from tests.support.worlds import ENVIRONMENT, GUARD, NOW

AT = NOW - timedelta(hours=2)
PLAIN = Event(
    "feature_flag.evaluation",
    AT,
    {
        "feature_flag.key": f"agent.guard.{GUARD}",
        "feature_flag.result.variant": "shadow",
        "feature_flag.context.id": "PSEUDONYM",
        "feature_flag.version": "7",
    },
)


@pytest.fixture
def phase():
    return Mode.ENFORCE


def evaluation_with(**attributes: Value) -> Event:
    """Return an evaluation with these further attributes; `__` stands for a dot."""
    further = {key.replace("__", "."): value for key, value in attributes.items()}
    return replace(PLAIN, attributes={**PLAIN.attributes, **further})


EXPOSING = [
    pytest.param(replace(PLAIN, body="what the user asked"), id="a body"),
    pytest.param(evaluation_with(error__message="no such file"), id="the text of an error"),
    pytest.param(evaluation_with(tool__arguments="rm -rf"), id="arguments"),
    pytest.param(evaluation_with(note="x" * 129), id="a long string"),
]
EACH = pytest.mark.parametrize("event", EXPOSING)


def under(ids: str, event: Event):
    """Return a request of a process that carries assignment ids."""
    request = logs([event])
    if ids:
        request.resource_logs[0].resource.attributes.add(
            key="agent.guard.assignment.id", value=any_value(ids)
        )
    return request


@EACH
def test_content_under_an_id_of_the_resource_latches_once(context, host, event):
    _, owner_id = assignment_for(context, "owner-1")
    for _ in range(2):
        assert partial_of(host.send(under(owner_id, event))) == (0, "")
    (found,) = context.incidents.violations(ENVIRONMENT)
    assert (found.invariant, found.guard) == (Invariant.SENSITIVE_FIELD, GUARD)
    assert is_latched(context)


@EACH
@pytest.mark.parametrize(
    ("owner", "is_trusted", "counter"),
    [
        pytest.param("owner-1", False, "untrusted_violation", id="from an untrusted producer"),
        pytest.param(None, True, "unvouched_violation", id="without an id"),
        pytest.param("a1.forged", True, "unvouched_violation", id="under a forged id"),
    ],
)
def test_content_without_a_verified_id_is_counted_once(context, event, owner, is_trusted, counter):
    host = Host(context, is_trusted=is_trusted)
    ids = assignment_for(context, owner)[1] if owner == "owner-1" else owner or ""
    for _ in range(2):
        host.send(under(ids, event))
    assert idle_violations(context) == {f"{counter}:sensitive_field": 1}
    assert not is_latched(context)


def test_an_evaluation_without_content_is_only_volume(context, host):
    _, owner_id = assignment_for(context, "owner-1")
    assert partial_of(host.send(under(owner_id, PLAIN))) == (0, "")
    assert (idle_violations(context), is_latched(context)) == ({}, False)
    assert list(context.evidence.counters(ENVIRONMENT, NOW.date()).values()) == [1]


def test_content_on_an_evaluation_that_is_rejected_latches_too(context, host):
    _, owner_id = assignment_for(context, "owner-1")
    broken = evaluation_with(tool__arguments="rm -rf", feature_flag__result__variant="loud")
    assert partial_of(host.send(under(owner_id, broken)))[0] == 1
    assert is_latched(context)


@pytest.mark.parametrize(
    "at", [pytest.param(AT, id="in time"), pytest.param(NOW - timedelta(days=4), id="too late")]
)
def test_another_flag_may_carry_any_content(context, host, at):
    _, owner_id = assignment_for(context, "owner-1")
    other = replace(
        evaluation_with(feature_flag__key="new-checkout"), at=at, body="what the user asked"
    )
    host.send(under(owner_id, other))
    assert (idle_violations(context), is_latched(context)) == ({}, False)
