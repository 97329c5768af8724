"""The outcome of a prompt of qwen-code, by recorded records that are changed a little."""

from datetime import timedelta

import pytest

from guardwave.reducer.vocabulary import Outcome
from tests.support.otlp.qwen import (
    Body,
    Json,
    Receiver,
    attribute,
    cases,
    changed,
    edited,
    event_of,
)

CASE = cases()["shadow-success_only"]


def later(item: Json, seconds: float) -> Json:
    return {**item, "timeUnixNano": str(int(item["timeUnixNano"]) + int(seconds * 1e9))}


def last(event: str, case=CASE) -> tuple[Json, Json, Json]:
    """Return the last record of an event of a case, with its Resource and scope."""
    matching: list[tuple[Json, Json, Json]] = [
        found for body in case.logs for found in body.items if event_of(found[2]) == event
    ]
    return matching[-1]


def one(event: str, edit=lambda item: item, case=CASE) -> Body:
    """Return a body with one record of a case, edited."""
    resource, scope, item = last(event, case)
    return Body("logs", {}).of_one(resource, scope, [edit(item)])


def turns(count: int):
    """Return an edit that makes a conversation end after so many begun turns."""
    return lambda item: [
        changed(item, "turnCount", {"intValue": count})
        if event_of(item).endswith("conversation_finished")
        else item
    ]


def unset(key: str):
    """Return an edit that leaves an attribute without a value."""
    return lambda item: [changed(item, key, {})]


def loop(kind: str) -> Body:
    def as_loop(item: Json) -> Json:
        for key, value in (("event.name", "loop_detected"), ("loop_type", kind)):
            item = changed(item, key, {"stringValue": value})
        return item

    return one("qwen-code.user_prompt", as_loop)


FAILURE = one(
    "qwen-code.user_prompt",
    lambda item: changed(item, "event.name", {"stringValue": "qwen-code.api_error"}),
)


def status(word: str) -> Body:
    """Return the span of the prompt with another status."""
    (spans,) = [body for body in CASE.bodies if body.signal == "traces"]
    return edited(
        spans,
        lambda item: (
            [changed(item, "qwen-code.turn_status", {"stringValue": word})]
            if item["name"] == "qwen-code.interaction"
            else [item]
        ),
    )


@pytest.mark.parametrize(
    ("begun", "more", "outcome"),
    [
        pytest.param(3, [], Outcome.COMPLETED, id="each begun turn was answered"),
        pytest.param(4, [], Outcome.CANCELLED, id="the last turn was not answered"),
        pytest.param(4, [FAILURE], Outcome.FAILED, id="the last request failed"),
        pytest.param(3, [FAILURE], Outcome.COMPLETED, id="a failed request was made good"),
        pytest.param(
            3,
            [loop("repeated_tool_execution_failure")],
            Outcome.GUARD_STOPPED,
            id="the guard stopped it",
        ),
        pytest.param(
            3,
            [loop("global_tool_call_duplicate")],
            Outcome.GUARD_STOPPED,
            id="another guard stopped it",
        ),
        pytest.param(
            3, [loop("invalid_tool_params_stagnation")], Outcome.LIMIT, id="it ran into a limit"
        ),
        pytest.param(
            3, [loop("something_new")], Outcome.FAILED, id="a loop of a kind not known ended it"
        ),
        pytest.param(4, [status("ok")], Outcome.COMPLETED, id="the span knows better: it is well"),
        pytest.param(
            3, [status("cancelled")], Outcome.CANCELLED, id="the span knows better: cancelled"
        ),
        pytest.param(3, [status("error")], Outcome.FAILED, id="the span knows better: it failed"),
        pytest.param(
            3,
            [status("error"), loop("repeated_tool_execution_failure")],
            Outcome.GUARD_STOPPED,
            id="a guard's stop is an error of the span",
        ),
    ],
)
@pytest.mark.parametrize("is_reversed", [False, True], ids=["in order", "in reverse"])
def test_the_outcome_is_what_the_records_show_together(store, begun, more, outcome, is_reversed):
    receiver = Receiver(store, CASE)
    logs = CASE.edited_logs(turns(begun))
    bodies = [*logs, *more]
    receiver.send_all(list(reversed(bodies)) if is_reversed else bodies)
    (row,) = receiver.rows()
    assert (row.started, row.ended, getattr(row, outcome)) == (1, 1, 1)


def test_a_span_alone_ends_a_prompt_that_is_not_covered(store):
    receiver = Receiver(store, CASE)
    receiver.send_all([status("ok")])
    (row,) = receiver.rows()
    assert (row.started, row.completed, row.covered) == (1, 1, 0)


def test_a_prompt_of_which_an_answer_is_missing_is_not_covered(store):
    receiver = Receiver(store, CASE)
    drop = iter([True])

    def without_one_answer(item: Json) -> list[Json]:
        is_dropped = event_of(item) == "qwen-code.api_response" and next(drop, False)
        return [] if is_dropped else [item]

    logs = CASE.edited_logs(without_one_answer)
    receiver.send_all([*logs, status("ok")])
    (row,) = receiver.rows()
    assert (row.completed, row.covered) == (1, 0)


def test_two_prompts_in_one_trace_are_not_covered(store):
    receiver = Receiver(store, CASE)
    receiver.send_all(CASE.without("traces"))
    receiver.send_all([one("qwen-code.user_prompt", lambda item: later(item, 1))])
    (row,) = receiver.rows()
    assert (row.started, row.covered) == (1, 0)


def test_the_legacy_success_attribute_changes_nothing(store):
    case = cases()["enforce-repeat_fail"]

    def contrary(item: Json) -> list[Json]:
        if attribute(item, "success") is None:
            return [item]
        return [changed(item, "success", {"boolValue": not attribute(item, "success")})]

    counted = []
    for bodies in (case.logs, case.edited_logs(contrary)):
        store.flushall()
        receiver = Receiver(store, case)
        receiver.send_all(bodies)
        (row,) = receiver.rows()
        counted.append((row.guard_stopped, row.completed, row.tokens, row.turns, row.stopped))
    assert counted[0] == counted[1] == (1, 0, 9756, 9, 1)


@pytest.mark.parametrize(
    "key", ["tool_type", "execution_error_type", "candidate_ordinal", "failure_count_bucket"]
)
def test_an_attribute_with_nothing_set_is_one_that_is_not_reported(store, key):
    case = cases()["shadow-repeat_fail"]
    receiver = Receiver(store, case)
    receiver.send_all(case.edited_logs(lambda item: [changed(item, key, {})]))
    (row,) = receiver.rows()
    assert (row.would_stopped, row.covered) == (1, 1)


def test_tokens_that_were_not_reported_make_the_end_one_that_does_not_conform(store):
    receiver = Receiver(store, CASE)
    receiver.send_all(CASE.edited_logs(unset("input_token_count")))
    (row,) = receiver.rows()
    assert (row.completed, row.tokens, row.turns, row.covered) == (1, 0, 3, 1)
    assert (row.tokens_untold, row.turns_untold) == (1, 0)
    day = receiver.context.evidence.days("internal")[0]
    receiver.context.evidence.seal("internal", day, at=receiver.now, longest_outage_seconds=0.0)
    (sealed,) = receiver.context.evidence.sealed_days("internal", [day])
    assert (sealed.records, sealed.conforming) == (2, 1)


def test_a_prompt_that_never_ends_is_lost_after_a_day(store):
    receiver = Receiver(store, CASE)
    receiver.send_all([one("qwen-code.user_prompt"), one("qwen-code.api_response")])
    evidence = receiver.context.evidence
    assert evidence.close_lost_prompts("internal", receiver.now + timedelta(hours=23)) == 0
    assert evidence.close_lost_prompts("internal", receiver.now + timedelta(hours=24)) == 1
    (row,) = receiver.rows()
    assert (row.started, row.lost, row.ended) == (1, 1, 0)


def test_an_end_that_comes_after_all_makes_a_lost_prompt_whole(store):
    receiver = Receiver(store, CASE)
    receiver.send_all([one("qwen-code.user_prompt")])
    receiver.context.evidence.close_lost_prompts("internal", receiver.now + timedelta(hours=25))
    receiver.send_all(CASE.bodies)
    (row,) = receiver.rows()
    assert (row.started, row.lost, row.completed) == (1, 0, 1)


def test_calls_after_a_decision_that_would_have_stopped_are_counted(store):
    case = cases()["shadow-repeat_fail"]
    receiver = Receiver(store, case)
    receiver.send_all(list(reversed(case.bodies)))
    (row,) = receiver.rows()
    # twelve calls failed, and the ninth would have been the last
    assert row.calls_after_would_stop == 3


@pytest.mark.parametrize(
    ("kind", "loops"),
    [
        pytest.param("repeated_tool_execution_failure", 0, id="its own guard's stop"),
        pytest.param("global_tool_call_duplicate", 1, id="the stop of another guard"),
        pytest.param("invalid_tool_params_stagnation", 1, id="a protection without a guard"),
        pytest.param("something_new", 0, id="a kind that is not known is no loop event"),
    ],
)
def test_what_another_guard_stopped_counts_in_the_prompts_owner_day(store, kind, loops):
    receiver = Receiver(store, CASE)
    receiver.send_all([*CASE.logs, loop(kind)])
    (row,) = receiver.rows()
    assert row.loops == loops
