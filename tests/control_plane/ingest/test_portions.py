"""A request goes to the store in portions, and what of them was written counts once."""

from collections.abc import Iterable
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from control_plane.data_plane.credential_cache import CredentialCache
from control_plane.ingest.door import Door
from control_plane.ingest.intake import Intake
from control_plane.ingest.portions import PORTION, Addition, portions
from control_plane.stores.evidence_events import RefusedEvent, Sighting
from control_plane.stores.prompt_events import BookedEvent, Like, PromptEvents, PromptKey
from control_plane.stores.seen import Seen
from tests.control_plane.hosts import Host, Prompt, assigned, logs, partial_of
from tests.control_plane.told_prompts import each_of
from tests.control_plane.worlds import ENVIRONMENT, GUARD, NOW, VERSION

AT = NOW - timedelta(hours=2)
SIGHTINGS = [
    Sighting(owner, VERSION, "t-1", NOW.date(), NOW.date(), is_of_prompt=True)
    for owner in ("A" * 16, "B" * 16)
]
SEEN = [RefusedEvent(Seen(at, at)) for at in range(40)]
ADDITIONS = st.lists(
    st.tuples(st.lists(st.sampled_from(SEEN), max_size=4), st.lists(st.sampled_from(SIGHTINGS))),
    max_size=30,
)


@given(ADDITIONS, st.integers(1, 9))
def test_portions_hold_every_event_in_order_and_are_bounded(additions: list[Addition], most):
    parts = list(portions(additions, most=most))
    assert [event for part in parts for event in part.events] == [
        event for events, _ in additions for event in events
    ]
    longest = max((len(events) for events, _ in additions), default=0)
    assert all(len(part.events) < most + longest or not part.events for part in parts)
    assert len(parts) >= 1


@given(ADDITIONS, st.integers(1, 9))
def test_a_sighting_is_told_once_and_not_after_its_events(additions: list[Addition], most):
    parts = list(portions(additions, most=most))
    sightings = [sighting for part in parts for sighting in part.sightings]
    assert sorted(sightings, key=str) == sorted({s for _, each in additions for s in each}, key=str)
    written = 0
    seen: set[Sighting] = set()
    for part in parts:
        written += len(part.events)
        seen |= part.sightings
        before = 0
        for events, shown in additions:
            if before < written and events:
                assert seen.issuperset(shown)
            before += len(events)


@given(st.lists(st.integers(0, 40), max_size=9), st.integers(1, 9))
def test_a_prompt_of_many_events_is_cut_into_as_many_portions(sizes, most):
    like = Like("t", (), 1, (), (), 1)
    prompts = [
        PromptEvents.of(
            PromptKey("A" * 16, str(at), 0),
            [BookedEvent(like, number, number, 0) for number in range(size)],
        )
        for at, size in enumerate(sizes)
    ]
    parts = list(portions([((each,), SIGHTINGS) for each in prompts], most=most))
    cut = [[each for each in part.events if isinstance(each, PromptEvents)] for part in parts]
    assert spread(each for part in cut for each in part) == spread(prompts)
    assert all(len(spread(part)) < 2 * most for part in cut)


def spread(prompts: Iterable[PromptEvents]) -> list[object]:
    return [(each.prompt.suffix, event) for each in prompts for event in each_of(each)]


def starts(context, count, *, prefix="p"):
    _, owner_id = assigned(context, "owner-1")
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
    request = logs([*starts(context, PORTION * 2), bad])
    host.door = Door(Intake(context, write_seconds=0), CredentialCache(context))

    answer = host.send(request)
    assert (answer.status, dict(answer.headers)["Retry-After"]) == (503, "1")
    assert b"send it again" in answer.body
    assert started(context) == PORTION
    assert "refused" not in context.evidence.health(ENVIRONMENT)

    host.door = unhurried
    assert partial_of(host.send(request))[0] == 1
    assert started(context) == PORTION * 2
    assert context.evidence.health(ENVIRONMENT)["refused"] == 1
