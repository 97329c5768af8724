"""Content of rejected items: a violation in any case, and no evidence."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from guardwave.control_plane.core.clock import to_ns
from guardwave.control_plane.ingest.model.otlp_values import Value
from guardwave.reducer.vocabulary import Invariant, Mode
from tests.support.hosts import Event, Host, Prompt, assignment_for, logs, partial_of
from tests.support.latches import idle_violations, is_latched
from tests.support.otlp.bodies import counter_request
from tests.support.worlds import ENVIRONMENT, GUARD, NOW

AT = NOW - timedelta(hours=2)
BAD_COUNT: Mapping[str, Value] = {"agent.guard.sequence": -1}


@pytest.fixture
def phase():
    return Mode.ENFORCE


REFUSED = pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"agent.guard.decision": "no word of ours"}, id="a bad word"),
        pytest.param({"agent.guard.sequence": -1}, id="a bad count"),
        pytest.param({"agent.guard.mode": None}, id="a missing field"),
        pytest.param({"agent.guard.error.type": "é"}, id="a bad name"),
    ],
)


def rejected_event(
    context, changed: Mapping[str, Value] | None = None, *, ids: tuple[str, ...] | None = None
) -> Event:
    """Return a transition with content that is rejected for another field."""
    owner_ids = (assignment_for(context, "owner-1")[1],) if ids is None else ids
    event = Prompt("p-1", owner_ids, AT).transition(1, "tracked")
    content = {"tool.arguments": "rm -rf"}
    return replace(event, attributes={**event.attributes, **content, **(changed or {})})


@REFUSED
def test_content_on_a_record_rejected_for_another_reason_latches(context, host, changed):
    request = logs([rejected_event(context, changed)])
    for _ in range(2):
        rejected, message = partial_of(host.send(request))
        assert (rejected, message.partition(":")[0]) == (1, "bad_attribute")
    (found,) = context.incidents.violations(ENVIRONMENT)
    assert (found.invariant, found.guard) == (Invariant.SENSITIVE_FIELD, GUARD)
    assert is_latched(context)
    assert context.evidence.days(ENVIRONMENT) == ()
    counted = context.evidence.health(ENVIRONMENT)
    assert (counted["accepted"], counted["refused"]) == (0, 1)
    assert "last_record_s" not in counted


@pytest.mark.parametrize(
    "at",
    [
        pytest.param(NOW - timedelta(days=4), id="too late"),
        pytest.param(NOW + timedelta(hours=1), id="of the future"),
    ],
)
def test_content_on_a_record_of_no_acceptable_time_latches(context, host, at):
    event = replace(rejected_event(context), at=at)
    assert partial_of(host.send(logs([event])))[0] == 1
    assert is_latched(context)


def test_a_body_on_a_record_of_two_owners_latches(context, host):
    ids = tuple(assignment_for(context, f"owner-{number}")[1] for number in (1, 2))
    event = replace(Prompt("p-1", ids, AT).start(), body="the whole prompt")
    assert partial_of(host.send(logs([event])))[0] == 1
    assert is_latched(context)


def test_an_overlong_prompt_id_latches(context, host):
    _, owner_id = assignment_for(context, "owner-1")
    assert partial_of(host.send(logs([Prompt("p" * 129, [owner_id], AT).start()])))[0] == 1
    assert is_latched(context)


def test_content_on_a_rejected_point_latches(context, host):
    _, owner_id = assignment_for(context, "owner-1")
    at_ns = to_ns(AT)
    labels = {
        "agent.guard.name": GUARD,
        "agent.guard.mode": "shadow",
        "agent.guard.prompt.id": "p-1",
    }
    request = counter_request(
        labels, as_int=-1, time_unix_nano=at_ns, start_time_unix_nano=at_ns - 1
    )
    attribute = request.resource_metrics[0].resource.attributes.add(key="agent.guard.assignment.id")
    attribute.value.string_value = owner_id
    assert partial_of(host.send(request), "metrics")[0] == 1
    (found,) = context.incidents.violations(ENVIRONMENT)
    assert found.invariant is Invariant.SENSITIVE_FIELD
    assert is_latched(context)


@pytest.mark.parametrize(
    ("ids", "is_trusted", "counter"),
    [
        pytest.param(None, False, "untrusted_violation", id="from an untrusted producer"),
        pytest.param((), True, "unvouched_violation", id="without an id"),
        pytest.param(("a1.forged",), True, "unvouched_violation", id="under a forged id"),
    ],
)
def test_content_on_a_rejected_record_without_an_id_is_counted_once(
    context, ids, is_trusted, counter
):
    host = Host(context, is_trusted=is_trusted)
    request = logs([rejected_event(context, BAD_COUNT, ids=ids)])
    for _ in range(2):
        assert partial_of(host.send(request))[0] == 1
    assert idle_violations(context) == {f"{counter}:sensitive_field": 1}
    assert not is_latched(context)


@pytest.mark.parametrize("forged_first", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        pytest.param({}, "forged_assignment", id="rejected for it"),
        pytest.param(BAD_COUNT, "bad_attribute", id="rejected for another field"),
    ],
)
def test_content_under_a_forged_id_beside_a_valid_one_is_counted_and_never_latches(
    context, host, changed, reason, forged_first
):
    ids = ("a1.forged", assignment_for(context, "owner-1")[1])
    request = logs([rejected_event(context, changed, ids=ids if forged_first else ids[::-1])])
    for _ in range(2):
        rejected, message = partial_of(host.send(request))
        assert (rejected, message.partition(":")[0]) == (1, reason)
    assert idle_violations(context) == {"unvouched_violation:sensitive_field": 1}
    assert not is_latched(context)
    assert context.incidents.violations(ENVIRONMENT) == ()


def test_a_rejected_record_without_content_is_no_violation(context, host):
    _, owner_id = assignment_for(context, "owner-1")
    event = Prompt("p-1", [owner_id], AT).transition(1, "tracked")
    event = replace(event, attributes={**event.attributes, **BAD_COUNT})
    assert partial_of(host.send(logs([event])))[0] == 1
    assert context.incidents.violations(ENVIRONMENT) == ()
    assert idle_violations(context) == {}
