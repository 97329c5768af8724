"""Write batches: a request goes to the store in pieces, and each piece counts once."""

from collections.abc import Iterable
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from guardwave.control_plane.data_plane.credential_cache import CredentialCache
from guardwave.control_plane.ingest.door import Door
from guardwave.control_plane.ingest.intake import (
    WRITE_BATCH_EVENTS,
    Addition,
    Intake,
    write_batches,
)
from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    EventRow,
    PromptEvents,
    PromptKey,
    SharedAttributes,
)
from guardwave.control_plane.stores.evidence.delta.request import OwnerActivity, RejectedEvent
from tests.support.hosts import Host, Prompt, assignment_for, logs, partial_of
from tests.support.reported_prompts import rows_of
from tests.support.worlds import ENVIRONMENT, GUARD, NOW, VERSION

AT = NOW - timedelta(hours=2)
ACTIVITY = [
    OwnerActivity(owner, VERSION, "t-1", NOW.date(), NOW.date(), is_of_prompt=True)
    for owner in ("A" * 16, "B" * 16)
]
EVENTS = [RejectedEvent(DedupeKey(at, at)) for at in range(40)]
ADDITIONS = st.lists(
    st.tuples(st.lists(st.sampled_from(EVENTS), max_size=4), st.lists(st.sampled_from(ACTIVITY))),
    max_size=30,
)


@given(ADDITIONS, st.integers(1, 9))
def test_batches_hold_every_event_in_order_and_are_bounded(additions: list[Addition], most):
    parts = list(write_batches(additions, most=most))
    assert [event for part in parts for event in part.events] == [
        event for events, _ in additions for event in events
    ]
    longest = max((len(events) for events, _ in additions), default=0)
    assert all(len(part.events) < most + longest or not part.events for part in parts)
    assert len(parts) >= 1


@given(ADDITIONS, st.integers(1, 9))
def test_an_owners_activity_comes_once_and_not_after_its_events(additions: list[Addition], most):
    parts = list(write_batches(additions, most=most))
    activity = [owner_activity for part in parts for owner_activity in part.activity]
    assert sorted(activity, key=str) == sorted(
        {owner_activity for _, active in additions for owner_activity in active}, key=str
    )
    written = 0
    known: set[OwnerActivity] = set()
    for part in parts:
        written += len(part.events)
        known |= part.activity
        before = 0
        for events, active in additions:
            if before < written and events:
                assert known.issuperset(active)
            before += len(events)


@given(st.lists(st.integers(0, 40), max_size=9), st.integers(1, 9))
def test_a_prompt_of_many_events_is_split_over_batches(sizes, most):
    shared = SharedAttributes("t", (), 1, (), (), 1)
    prompts = [
        PromptEvents.of(
            PromptKey("A" * 16, str(at), 0),
            [EventRow(shared, number, number, 0) for number in range(size)],
        )
        for at, size in enumerate(sizes)
    ]
    parts = list(write_batches([((prompt,), ACTIVITY) for prompt in prompts], most=most))
    split = [[event for event in part.events if isinstance(event, PromptEvents)] for part in parts]
    assert spread(event for part in split for event in part) == spread(prompts)
    assert all(len(spread(part)) < 2 * most for part in split)


def spread(prompts: Iterable[PromptEvents]) -> list[object]:
    return [(prompt.prompt.suffix, event) for prompt in prompts for event in rows_of(prompt)]


def starts(context, count, *, prefix="p"):
    _, owner_id = assignment_for(context, "owner-1")
    return [Prompt(f"{prefix}-{at}", [owner_id], AT).start() for at in range(count)]


def started(context):
    rows = context.evidence.owner_days(ENVIRONMENT, GUARD, 1, [NOW.date()])
    return sum(row.started for row in rows)


def test_the_starts_of_a_full_body_count_once_each_however_often_it_comes(context):
    host = Host(context)
    request = logs(starts(context, 9900))
    for _ in range(2):
        assert partial_of(host.send(request)) == (0, "")
        assert started(context) == 9900


def test_a_request_that_a_busy_store_cuts_off_is_healed_by_its_repetition(context):
    host = Host(context)
    unhurried = host.door
    bad = Prompt("bad", ["a1.forged"], AT).start()
    request = logs([*starts(context, WRITE_BATCH_EVENTS * 2), bad])
    host.door = Door(Intake(context, write_seconds=0), CredentialCache(context))

    answer = host.send(request)
    assert (answer.status, dict(answer.headers)["Retry-After"]) == (503, "1")
    assert b"send it again" in answer.body
    assert started(context) == WRITE_BATCH_EVENTS
    assert "refused" not in context.evidence.health(ENVIRONMENT)

    host.door = unhurried
    assert partial_of(host.send(request))[0] == 1
    assert started(context) == WRITE_BATCH_EVENTS * 2
    assert context.evidence.health(ENVIRONMENT)["refused"] == 1
