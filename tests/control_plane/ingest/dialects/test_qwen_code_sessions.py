"""Sessions of qwen-code: the prompts that a session opened again marks as disrupted."""

import itertools

import pytest

from guardwave.control_plane.ingest.dialects.qwen_code_vocabulary import SCOPE
from tests.support.otlp.qwen import Body, Case, Json, Receiver, cases, changed, event_of

CASE = cases()["shadow-success_only"]
STOPPED = cases()["enforce-repeat_fail"]


def opened(case: Case, seconds: float, *, session: str = "") -> Body:
    """Return a body in which a session is opened so long after the case's conversation finished."""
    at = finished_ns(case) + int(seconds * 1e9)
    item = {
        "timeUnixNano": str(at),
        "attributes": [
            text("event.name", "session.start"),
            text("session.id", session or case.entry["acp_session_id"]),
        ],
    }
    resource, _, _ = next(iter(case.bodies[0].items))
    return case.bodies[0].of_one(resource, {"name": SCOPE}, [item])


def text(key: str, value: str) -> Json:
    return {"key": key, "value": {"stringValue": value}}


def finished_ns(case: Case) -> int:
    return max(
        int(item["timeUnixNano"])
        for body in case.logs
        for _, _, item in body.items
        if event_of(item).endswith("conversation_finished")
    )


def second_prompt(case: Case, seconds: float) -> list[Body]:
    """Return the case's log records once more, as the next prompt of the same session."""
    trace = {"traceId": "0102030405060708090a0b0c0d0e0f10"}
    prompt = {"stringValue": f"{case.entry['acp_session_id']}########2"}

    def again(item: Json) -> list[Json]:
        if event_of(item).startswith("session."):
            return []
        at = {"timeUnixNano": str(int(item["timeUnixNano"]) + int(seconds * 1e9))}
        return [changed({**item, **trace, **at}, "prompt_id", prompt)]

    return case.edited_logs(again)


@pytest.mark.parametrize(
    ("seconds", "disrupted"),
    [
        pytest.param(-30, 0, id="before the end"),
        pytest.param(1, 1, id="at once"),
        pytest.param(599, 1, id="within ten minutes"),
        pytest.param(601, 0, id="after ten minutes"),
    ],
)
@pytest.mark.parametrize("is_first", [False, True], ids=["sent last", "sent first"])
@pytest.mark.parametrize("signals", ["logs and spans", "logs"])
def test_a_session_that_is_opened_again_soon_disrupts_the_prompt_before(
    store, seconds, disrupted, is_first, signals
):
    receiver = Receiver(store, CASE, minutes=15)
    bodies = list(CASE.bodies if signals == "logs and spans" else CASE.without("traces"))
    again = [opened(CASE, seconds)]
    receiver.send_all([*again, *bodies] if is_first else [*bodies, *again])
    (row,) = receiver.rows()
    assert (row.started, row.completed, row.disrupted) == (1, 1, disrupted)


def test_another_session_that_is_opened_disrupts_nothing(store):
    receiver = Receiver(store, CASE, minutes=15)
    receiver.send_all([*CASE.bodies, opened(CASE, 5, session="another-session")])
    (row,) = receiver.rows()
    assert row.disrupted == 0


def test_the_next_prompt_after_one_that_the_guard_stopped_is_no_disruption(store):
    receiver = Receiver(store, STOPPED, minutes=15)
    receiver.send_all([*STOPPED.bodies, *second_prompt(STOPPED, 20)])
    (row,) = receiver.rows()
    assert (row.started, row.guard_stopped, row.stopped, row.disrupted) == (2, 2, 2, 0)


def test_only_the_prompt_that_ended_last_is_disrupted_in_any_order(store):
    parts = [
        list(CASE.without("metrics")),
        second_prompt(CASE, 60),
        [opened(CASE, 90)],
    ]
    for order in itertools.permutations(parts):
        store.flushall()
        receiver = Receiver(store, CASE, minutes=15)
        receiver.send_all([body for part in order for body in part])
        (row,) = receiver.rows()
        assert (row.started, row.completed, row.disrupted) == (2, 2, 1)


def test_a_session_that_is_opened_twice_after_a_prompt_disrupts_it_once(store):
    receiver = Receiver(store, CASE, minutes=15)
    receiver.send_all([*CASE.bodies, opened(CASE, 5), opened(CASE, 30), opened(CASE, 5)])
    (row,) = receiver.rows()
    assert row.disrupted == 1


def test_a_session_opened_again_between_two_prompts_disrupts_the_first_alone(store):
    receiver = Receiver(store, CASE, minutes=15)
    receiver.send_all([*CASE.bodies, opened(CASE, 30), *second_prompt(CASE, 60)])
    (row,) = receiver.rows()
    assert (row.started, row.disrupted) == (2, 1)
