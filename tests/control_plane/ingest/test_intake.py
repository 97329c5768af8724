"""Intake: evidence of records through the door, volume without evidence, and rejections."""

from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from guardwave.control_plane.commands.environments import create_environment, create_rollout
from guardwave.control_plane.core.clock import to_ns
from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.vocabulary import Cohort, Mode
from tests.support.hosts import (
    Event,
    Host,
    Prompt,
    assignment_for,
    issue_id,
    logs,
    partial_of,
    pseudonym_in,
)
from tests.support.otlp.bodies import NOW_NS, counter_request
from tests.support.worlds import (
    ENVIRONMENT,
    GUARD,
    NOW,
    OPERATOR,
    VERSION,
    WHY,
    context_over,
    world_in,
)

TODAY = NOW.date()
OTHER_GUARD = "duplicate_call_id"
AT = NOW - timedelta(hours=2)


def rows(context, *, guard=GUARD, wave=1, day: date = TODAY):
    return context.evidence.owner_days(ENVIRONMENT, guard, wave, [day])


def evidence(context):
    days = context.evidence.days(ENVIRONMENT)
    return (
        [rows(context, day=day) for day in days],
        [context.evidence.counters(ENVIRONMENT, day) for day in days],
        [context.evidence.sealed_days(ENVIRONMENT, days)],
    )


def test_a_prompt_adds_one_owner_day(context, host, owner_id):
    prompt = Prompt("p-1", [owner_id], AT, decisions=("tracked", "would_warn", "would_stop"))
    assert partial_of(host.send_prompts(prompt)) == (0, "")
    (row,) = rows(context)
    assert row.owner == pseudonym_in(context, "owner-1")
    assert (row.cohort, row.started, row.completed, row.ended) == (Cohort.EVERYONE, 1, 1, 1)
    assert (row.tokens, row.turns, row.would_stopped, row.stopped) == (1000, 5, 1, 0)
    assert row.covered == 1


def test_a_prompt_of_two_guards_counts_once_for_each(context, host, owner_id):
    create_rollout(
        context, ENVIRONMENT, OTHER_GUARD, version_pin=(VERSION,), actor=OPERATOR, reason=WHY
    )
    _, other_id = assignment_for(context, "owner-1", guard=OTHER_GUARD)
    prompt = Prompt("p-1", [owner_id, other_id], AT, decisions=("tracked",))
    for _ in range(2):
        assert partial_of(host.send_prompts(prompt)) == (0, "")
    for guard in (GUARD, OTHER_GUARD):
        (row,) = rows(context, guard=guard)
        assert (row.started, row.ended, row.covered, row.tokens) == (1, 1, 1, 1000)


def test_ids_on_the_resource_apply_to_records_without_any(context, host, owner_id):
    prompt = Prompt("p-1", [], AT)
    request = logs(prompt.events(), resource={"agent.guard.assignment.id": owner_id})
    assert partial_of(host.send(request)) == (0, "")
    assert [row.started for row in rows(context)] == [1]


def test_a_record_without_an_id_is_volume_and_no_evidence(context, host):
    assert partial_of(host.send_prompts(Prompt("p-1", [], AT, decisions=("tracked",)))) == (0, "")
    assert rows(context) == ()
    counted = {
        counter: count
        for (_, counter), count in context.evidence.counters(ENVIRONMENT, TODAY).items()
    }
    assert counted == {
        "agent.guard.prompt.start": 1,
        "agent.guard.transition{decision=tracked}": 1,
        "agent.guard.prompt.end": 1,
    }


def test_volume_of_a_guard_that_nobody_knows_has_no_name(context, host):
    events = [
        Prompt("p-1", [], AT, guard=f"made_up_{at}").transition(1, "tracked") for at in range(3)
    ]
    flag = {"feature_flag.key": "agent.guard.made_up", "feature_flag.result.variant": "shadow"}
    asked = Event("feature_flag.evaluation", AT, flag)
    assert partial_of(host.send(logs([*events, asked]))) == (0, "")
    labels = {"agent.guard.name": "made_up", "agent.guard.mode": "shadow"}
    at_ns = to_ns(AT)
    request = counter_request(
        labels,
        metric="agent.guard.turns",
        as_int=1,
        time_unix_nano=at_ns,
        start_time_unix_nano=at_ns - 1,
    )
    assert partial_of(host.send(request), "metrics") == (0, "")
    strata = {stratum for _, stratum in context.evidence.strata(ENVIRONMENT)}
    assert {stratum.guard for stratum in strata} == {"unnamed"}
    counted = context.evidence.counters(ENVIRONMENT, TODAY)
    assert sum(counted.values()) == 5


def test_a_transition_under_the_id_of_another_guard_is_volume(context, host, owner_id):
    prompt = Prompt("p-1", [owner_id], AT, decisions=("tracked",), guard=OTHER_GUARD)
    assert partial_of(host.send(logs(prompt.transitions()))) == (0, "")
    assert rows(context) == ()
    assert rows(context, guard=OTHER_GUARD) == ()


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda text: f"{text[:-1]}{'A' if text[-1] != 'A' else 'B'}", id="its tag"),
        pytest.param(lambda text: text.replace(".shadow.", ".enforce."), id="its mode"),
        pytest.param(lambda text: text.replace(".1.", ".2.", 1), id="its wave"),
        pytest.param(lambda _: "a1.x.y", id="its shape"),
    ],
)
@pytest.mark.parametrize("encoding", list(Encoding))
def test_a_forged_id_is_named_and_stored_as_nothing(context, host, owner_id, forge, encoding):
    prompt = Prompt("p-1", [forge(owner_id)], AT, decisions=("tracked",))
    before = evidence(context)
    rejected, message = partial_of(host.send(logs(prompt.events()), encoding))
    assert rejected == 3
    assert message.startswith("forged_assignment: ")
    assert evidence(context) == before
    assert context.evidence.health(ENVIRONMENT)["refused:forged_assignment"] == 3


def test_an_id_of_another_environment_is_forged_here(context, host):
    create_environment(context, "other", requires=None, actor=OPERATOR, reason=WHY)
    create_rollout(context, "other", GUARD, version_pin=(VERSION,), actor=OPERATOR, reason=WHY)
    _, foreign = assignment_for(context, "owner-1", environment="other")
    assert partial_of(host.send_prompts(Prompt("p-1", [foreign], AT)))[0] == 2
    assert rows(context) == ()


def test_ids_of_two_owners_on_one_prompt_are_rejected(context, host, owner_id):
    _, other = assignment_for(context, "owner-2")
    rejected, message = partial_of(host.send_prompts(Prompt("p-1", [owner_id, other], AT)))
    assert rejected == 2
    assert "several owners" in message
    assert rows(context) == ()


def test_good_records_of_a_body_are_accepted_beside_rejected_ones(context, host, owner_id):
    good, bad = Prompt("p-1", [owner_id], AT), Prompt("p-2", ["a1.forged"], AT)
    rejected, message = partial_of(host.send_prompts(good, bad))
    assert rejected == 2
    assert "2 of 4 rejected" in message
    assert [row.started for row in rows(context)] == [1]


def test_an_end_that_no_host_may_send_costs_no_other_record(context, host, owner_id):
    prompts = [Prompt(f"p-{number}", [owner_id], AT) for number in range(25)]
    good = [event for prompt in prompts for event in prompt.events()]
    lost = Prompt("p-lost", [owner_id], AT, outcome="lost").end()
    rejected, message = partial_of(host.send(logs([*good[:30], lost, *good[30:]])))
    assert rejected == 1
    assert message.startswith("bad_attribute: ")
    assert "agent.guard.prompt.outcome is 'lost'" in message
    (row,) = rows(context)
    assert (row.started, row.completed, row.lost) == (25, 25, 0)


@pytest.mark.parametrize(
    ("at", "word"),
    [
        pytest.param(NOW - timedelta(hours=49), "late", id="older than two days"),
        pytest.param(NOW + timedelta(minutes=6), "future", id="more than 5 minutes ahead"),
    ],
)
def test_a_time_outside_the_window_is_rejected(context, host, owner_id, at, word):
    start = Prompt("p-1", [owner_id], at).start()
    rejected, message = partial_of(host.send(logs([start])))
    assert (rejected, message.partition(":")[0]) == (1, word)
    assert rows(context, day=at.date()) == ()


@pytest.mark.parametrize(
    ("resource", "word"),
    [
        pytest.param({"deployment.environment.name": ""}, "environment_missing", id="none"),
        pytest.param(
            {"deployment.environment": "public"}, "environment_conflict", id="two that differ"
        ),
        pytest.param(
            {"deployment.environment.name": "public"}, "environment_mismatch", id="another"
        ),
        pytest.param({"service.version": ""}, "version_missing", id="no version"),
    ],
)
def test_a_resource_without_environment_or_version_counts_for_nothing(
    context, host, owner_id, resource, word
):
    request = logs(Prompt("p-1", [owner_id], AT).events(), resource=resource)
    rejected, message = partial_of(host.send(request))
    assert (rejected, message.partition(":")[0]) == (2, word)
    assert rows(context) == ()


def test_a_quarantined_body_sent_again_is_one_fault_of_the_contract(context, host):
    request = logs(Prompt("p-1", [], AT).events(), resource={"service.version": ""})
    for _ in range(2):
        host.send(request)
    context.evidence.seal(ENVIRONMENT, TODAY, at=NOW, longest_outage_seconds=0.0)
    (day,) = context.evidence.sealed_days(ENVIRONMENT, [TODAY])
    assert (day.records, day.conforming) == (2, 0)


def test_an_end_without_values_that_the_gate_needs_does_not_conform(context, host, owner_id):
    prompt = Prompt("p-1", [owner_id], AT)
    host.send(logs([prompt.start(), prompt.end(**{"agent.guard.prompt.turns": None})]))
    context.evidence.seal(ENVIRONMENT, TODAY, at=NOW, longest_outage_seconds=0.0)
    (day,) = context.evidence.sealed_days(ENVIRONMENT, [TODAY])
    assert (day.records, day.conforming) == (2, 1)


def test_a_prompt_over_midnight_counts_on_the_day_of_its_start(context, host, owner_id):
    midnight = NOW.replace(hour=0)
    prompt = Prompt("p-1", [owner_id], midnight - timedelta(seconds=10))
    host.send(logs([prompt.end()]))
    host.send(logs([prompt.start()]))
    assert [row.started for row in rows(context, day=TODAY - timedelta(days=1))] == [1]
    assert rows(context) == ()


def test_a_prompt_whose_tokens_pass_what_can_be_counted_is_taken_in(context, host, owner_id):
    most = 2**53 - 1
    prompt = Prompt("p-1", [owner_id], AT)
    end = prompt.end(**{"gen_ai.usage.input_tokens": most, "gen_ai.usage.output_tokens": most})
    assert partial_of(host.send(logs([prompt.start(), end]))) == (0, "")
    assert [row.tokens for row in rows(context)] == [most]


def test_two_writers_that_share_an_identity_both_count(context, host):
    labels = {"agent.guard.name": GUARD, "agent.guard.mode": "shadow"}
    for value in (3, 4):
        request = counter_request(labels, metric="agent.guard.turns", as_int=value)
        assert partial_of(sent_at_now(host, request), "metrics") == (0, "")
    counted = context.evidence.counters(ENVIRONMENT, TODAY)
    assert sum(counted.values()) == 7


def sent_at_now(host, request: ExportMetricsServiceRequest):
    for batch in request.resource_metrics:
        for scope in batch.scope_metrics:
            for metric in scope.metrics:
                for point in metric.sum.data_points:
                    point.time_unix_nano += int(AT.timestamp()) * 10**9 - NOW_NS
                    point.start_time_unix_nano = point.time_unix_nano - 1
    return host.send(request)


def test_the_versions_and_producers_seen_are_facts_of_the_owner(context, host, owner_id):
    host.send_prompts(Prompt("p-1", [owner_id], AT))
    host.send(logs(Prompt("p-2", [owner_id], AT).events(), version="9.9.9"))
    facts = context.owners.all_facts(ENVIRONMENT)[pseudonym_in(context, "owner-1")]
    assert facts.versions == {VERSION: TODAY, "9.9.9": TODAY}
    assert len(facts.producers) == 1
    assert facts.prompt_days == {TODAY}


def test_evidence_stays_with_the_wave_that_the_id_names(context, host):
    pseudonym = pseudonym_in(context, "owner-1")
    late = issue_id(context, Assignment(GUARD, pseudonym, 7, Cohort.CONTROL, Mode.WARN, 3))
    host.send_prompts(Prompt("p-1", [late], AT, mode=Mode.WARN))
    assert rows(context) == ()
    assert [row.cohort for row in rows(context, wave=7)] == [Cohort.CONTROL]


def events_of_two_owners(context) -> list[Event]:
    """Nine events: of a prompt with two transitions, of a disrupted one, and one of nobody."""
    first, second = (assignment_for(context, f"owner-{number}")[1] for number in range(2))
    tracked = Prompt("p-1", [first], AT, decisions=("tracked", "would_warn"))
    disrupted = Prompt("p-2", [second], AT, decisions=("tracked",), is_disrupted=True)
    return [*tracked.events(), *disrupted.events(), Prompt("p-3", [], AT).start()]


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    order=st.permutations(range(9)),
    again=st.lists(st.integers(0, 8), max_size=9),
    cut=st.integers(1, 9),
)
def test_neither_order_nor_batches_nor_repeats_change_the_evidence(store, order, again, cut):
    store.flushall()
    context = world_in(context_over(store), Mode.SHADOW, owners=2).context
    host = Host(context)
    events = events_of_two_owners(context)
    sent = [events[at] for at in (*order, *again)]
    for at in range(0, len(sent), cut):
        assert partial_of(host.send(logs(sent[at : at + cut]))) == (0, "")
    sums = {
        row.owner: (row.started, row.ended, row.covered, row.disrupted, row.tokens)
        for row in rows(context)
    }
    assert sums == {
        pseudonym_in(context, "owner-0"): (1, 1, 1, 0, 1000),
        pseudonym_in(context, "owner-1"): (1, 1, 1, 1, 1000),
    }
    assert sum(context.evidence.counters(ENVIRONMENT, TODAY).values()) == 1


def test_one_of_two_contradicting_ends_in_one_body_counts(context, host, owner_id):
    """Whether the worker knows one of them or none; in the next body the other changes nothing."""
    completed, failed = (
        Prompt("p-1", [owner_id], AT, outcome=outcome) for outcome in ("completed", "failed")
    )
    for prompt_id in ("p-1", "p-2"):
        prompts = [replace(prompt, prompt_id=prompt_id) for prompt in (completed, failed)]
        first, second = prompts[0].end(**{"a.later.attribute": prompt_id}), prompts[1].end()
        for events in ([prompts[0].start(), first, second], [second], [first]):
            assert partial_of(host.send(logs(events))) == (0, "")
    (row,) = rows(context)
    assert (row.started, row.ended, row.completed + row.failed) == (2, 2, 2)
    assert row.tokens == 2000
