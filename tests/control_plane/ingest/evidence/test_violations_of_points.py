"""Violations of points: judged by their labels, once for each rise of a stream."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest

from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.vocabulary import Cohort, Invariant, Mode
from tests.support.hosts import Host, issue_id, partial_of, pseudonym_in
from tests.support.latches import idle_violations, is_latched, recorded_invariants, release
from tests.support.otlp.bodies import any_value, counter_request
from tests.support.worlds import ENVIRONMENT, GUARD, NOW

OTHER_GUARD = "identical_call"
START_NS = int((NOW - timedelta(hours=2)).timestamp()) * 10**9
MINUTE_NS = 60 * 10**9
DELTA, CUMULATIVE = 1, 2

# Labels of a transition point of a guard in shadow that breaks the invariant.
BROKEN: Mapping[Invariant, Mapping[str, str]] = {
    Invariant.CONTRACT_VIOLATION: {"decision": "reset", "reset.reason": "contract_violation"},
    Invariant.CANCELLED_COUNTED: {"decision": "tracked", "terminal.status": "cancelled"},
    Invariant.INELIGIBLE_COUNTED: {"decision": "tracked", "execution.status": "not_started"},
    Invariant.MODE_MISMATCH: {"mode": "enforce", "decision": "tracked"},
}
EACH = pytest.mark.parametrize(
    "invariant", [pytest.param(name, id=name.replace("_", " ")) for name in BROKEN]
)


@pytest.fixture
def phase():
    return Mode.ENFORCE


def id_of(context, mode: Mode = Mode.SHADOW, *, guard: str = GUARD, owner: str = "owner-1") -> str:
    pseudonym = pseudonym_in(context, owner)
    return issue_id(context, Assignment(guard, pseudonym, 1, Cohort.EVERYONE, mode, 1))


def point(
    ids: Sequence[str],
    labels: Mapping[str, str],
    *,
    value: int = 1,
    minute: int = 1,
    start_ns: int = START_NS,
    temporality: int = DELTA,
    metric: str = "agent.guard.transitions",
):
    """Return a point of a process under these ids, so many minutes after its start."""
    attributes = {"name": GUARD, "mode": "shadow", **labels}
    request = counter_request(
        {f"agent.guard.{key}": word for key, word in attributes.items()},
        metric=metric,
        temporality=temporality,
        as_int=value,
        start_time_unix_nano=start_ns,
        time_unix_nano=START_NS + minute * MINUTE_NS,
    )
    if ids:
        request.resource_metrics[0].resource.attributes.add(
            key="agent.guard.assignment.id", value=any_value("~".join(ids))
        )
    return request


def reported(ids: Sequence[str], **how: int):
    """Return the cumulative count of what a host itself found broken."""
    labels = {"invariant": "existing_guard_changed"}
    return point(ids, labels, metric="agent.guard.violations", temporality=CUMULATIVE, **how)


def test_a_count_that_is_exported_again_latches_once(context, host):
    ids = [id_of(context)]
    host.send(reported(ids, minute=1))
    release(context)
    for minute in (1, 2, 3):
        assert partial_of(host.send(reported(ids, minute=minute))) == (0, "")
    assert not is_latched(context)
    assert recorded_invariants(context) == [Invariant.EXISTING_GUARD_CHANGED]


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"value": 2}, id="that rises"),
        pytest.param({"start_ns": START_NS + MINUTE_NS}, id="of a process that began anew"),
    ],
)
def test_a_count_latches_again_when_it_counted_more(context, host, how):
    ids = [id_of(context)]
    host.send(reported(ids, minute=1))
    release(context)
    host.send(reported(ids, minute=2, **how))
    assert is_latched(context)
    assert recorded_invariants(context) == [Invariant.EXISTING_GUARD_CHANGED] * 2


@pytest.mark.parametrize(
    ("has_id", "is_trusted", "counter"),
    [
        pytest.param(True, False, "untrusted_violation", id="from an untrusted producer"),
        pytest.param(False, True, "unvouched_violation", id="without an id"),
    ],
)
def test_a_count_that_changes_nothing_is_counted_as_often_as_it_rose(
    context, has_id, is_trusted, counter
):
    host = Host(context, is_trusted=is_trusted)
    ids = [id_of(context)] if has_id else []
    for minute, value in enumerate((0, 1, 1, 1, 3, 3), start=1):
        host.send(reported(ids, minute=minute, value=value))
    assert idle_violations(context) == {f"{counter}:existing_guard_changed": 2}
    assert (recorded_invariants(context), is_latched(context)) == ([], False)


def test_a_repeated_violation_of_a_stream_is_still_volume(context, host):
    for minute, value in enumerate((1, 1, 3), start=1):
        host.send(reported([], minute=minute, value=value))
    (counted,) = context.evidence.counters(ENVIRONMENT, NOW.date()).values()
    assert counted == 3


@EACH
@pytest.mark.parametrize("temporality", [DELTA, CUMULATIVE], ids=["delta", "cumulative"])
def test_a_trusted_point_that_breaks_an_invariant_latches(context, host, invariant, temporality):
    request = point([id_of(context)], BROKEN[invariant], temporality=temporality)
    for _ in range(2):
        assert partial_of(host.send(request)) == (0, "")
    assert recorded_invariants(context) == [invariant]
    assert is_latched(context)


@EACH
def test_an_untrusted_point_that_breaks_an_invariant_is_counted(context, invariant):
    stranger = Host(context, is_trusted=False)
    for _ in range(2):
        stranger.send(point([id_of(context)], BROKEN[invariant]))
    assert idle_violations(context) == {f"untrusted_violation:{invariant}": 1}
    assert (recorded_invariants(context), is_latched(context)) == ([], False)


@EACH
def test_a_point_without_an_id_can_break_all_but_its_assignment(context, host, invariant):
    host.send(point([], BROKEN[invariant]))
    counted = {} if invariant == "mode_mismatch" else {f"unvouched_violation:{invariant}": 1}
    assert idle_violations(context) == counted
    assert not is_latched(context)


@EACH
def test_a_point_that_counts_nothing_breaks_nothing(context, host, invariant):
    host.send(point([id_of(context)], BROKEN[invariant], value=0))
    assert (recorded_invariants(context), idle_violations(context)) == ([], {})


def test_a_success_whose_execution_failed_is_impossible_in_a_point_too(context, host):
    labels = {"decision": "reset", "terminal.status": "success", "execution.status": "error"}
    host.send(point([id_of(context)], labels))
    assert recorded_invariants(context) == [Invariant.CONTRACT_VIOLATION]


@pytest.mark.parametrize(
    ("metric", "labels"),
    [
        pytest.param("agent.guard.prompts", {"prompt.stage": "start"}, id="prompts"),
        pytest.param("agent.guard.tokens", {}, id="tokens"),
        pytest.param("agent.guard.tool.executions", {"execution.status": "error"}, id="tool calls"),
    ],
)
def test_any_counter_in_a_mode_above_the_assigned_one_is_a_mismatch(context, host, metric, labels):
    host.send(point([id_of(context, Mode.WARN)], {**labels, "mode": "warn"}, metric=metric))
    assert recorded_invariants(context) == []
    host.send(point([id_of(context)], {**labels, "mode": "warn"}, metric=metric, minute=2))
    assert recorded_invariants(context) == [Invariant.MODE_MISMATCH]


def test_the_mode_of_another_guards_id_is_none_of_the_points(context, host):
    other = id_of(context, Mode.OFF, guard=OTHER_GUARD)
    host.send(point([other], {"decision": "tracked"}))
    assert (recorded_invariants(context), idle_violations(context)) == ([], {})


def test_of_several_owners_in_one_process_the_highest_mode_counts(context, host):
    ids = [id_of(context), id_of(context, Mode.ENFORCE, owner="owner-2")]
    host.send(point(ids, {"decision": "tracked", "mode": "enforce"}))
    assert recorded_invariants(context) == []


def test_a_point_of_a_guard_that_declares_nothing_breaks_only_what_holds_for_all(context, host):
    ids = [id_of(context, guard=OTHER_GUARD)]
    host.send(point(ids, {"name": OTHER_GUARD, **BROKEN[Invariant.CANCELLED_COUNTED]}))
    assert recorded_invariants(context) == []
    host.send(point(ids, {"name": OTHER_GUARD, **BROKEN[Invariant.CONTRACT_VIOLATION]}))
    assert recorded_invariants(context) == [Invariant.CONTRACT_VIOLATION]
