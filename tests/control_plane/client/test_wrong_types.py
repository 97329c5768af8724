"""Wrong types: a host's values that no type checker saw are dropped and counted, never an error.

The log of it is in test_words.py.
"""

import dataclasses
import hashlib
import math

import pytest

from guardwave.control_plane.client import Assignment, PromptEnd
from guardwave.reducer import contract as written
from guardwave.reducer.vocabulary import DisruptionKind, Invariant, LoopType, Mode, Outcome, Route
from tests.control_plane.client.telemetry_doors import ASSIGNED, REPEATED, STOP, Door

PATH = "/home/alice/secret.txt"


@pytest.fixture
def door():
    opened = Door()
    yield opened
    opened.close()


class Tricky:
    """Something that raises when it is compared, hashed or gone through."""

    def __iter__(self):
        raise RuntimeError(PATH)

    def __eq__(self, other):
        raise RuntimeError(PATH)

    def __hash__(self):
        raise RuntimeError(PATH)


TRICKY = Tricky()
ODD = [
    pytest.param(PATH, id="a text"),
    pytest.param(b"x", id="bytes"),
    pytest.param({}, id="an object"),
    pytest.param(1.5, id="a fraction"),
    pytest.param(10**400, id="a number beyond reason"),
    pytest.param(math.nan, id="not a number"),
    pytest.param(TRICKY, id="something tricky"),
]


def drop_count(door):
    """Return how many values were dropped, once no event is seen to hold the path."""
    assert PATH not in repr(door.events())
    return door.telemetry.failures


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "field", [field.name for field in dataclasses.fields(STOP) if field.name != "guard"]
)
def test_a_transition_with_a_field_of_another_type_is_dropped_without_a_gap(door, field, odd):
    broken = dataclasses.replace(STOP)
    object.__setattr__(broken, field, odd)
    prompt = door.telemetry.prompt(assignments=ASSIGNED)
    prompt.decided([STOP, broken, STOP])
    assert [attributes[written.SEQUENCE] for _, attributes in door.events()] == [1, 2]
    prompt.ended(PromptEnd(Outcome.FAILED))
    assert door.events()[-1][1][written.TRANSITIONS] == 2
    assert drop_count(door) == 1
    assert door.records().rejected == ()


@pytest.mark.parametrize("odd", [*ODD, pytest.param(-1, id="minus one")])
def test_an_ordinal_is_a_count(door, odd):
    door.telemetry.prompt(assignments=ASSIGNED).decided(
        [dataclasses.replace(STOP, candidate_ordinal=odd)]
    )
    assert (door.events(), drop_count(door)) == ([], 1)


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_transition_is_dropped_and_the_others_are_reported(door, odd):
    prompt = door.telemetry.prompt(assignments=ASSIGNED)
    prompt.decided([odd, STOP])
    prompt.decided(7)
    prompt.decided([STOP], is_history_preserved=odd)
    assert [attributes[written.SEQUENCE] for _, attributes in door.events()] == [1]
    assert drop_count(door) == 3


@pytest.mark.parametrize("odd", ODD)
def test_a_call_with_anything_else_for_a_word_reports_nothing(door, odd):
    prompt = door.telemetry.prompt(assignments=ASSIGNED)
    prompt.executed(odd)
    prompt.loop_detected(odd)
    prompt.violated(REPEATED, odd)
    prompt.violated(TRICKY, Invariant.MODE_MISMATCH)
    prompt.ended(odd)
    prompt.ended(PromptEnd(odd))
    prompt.disrupted(DisruptionKind.RETRY, offset_seconds=1.0)
    door.telemetry.evaluated(odd)
    assert door.events() == []
    assert drop_count(door) == 7
    prompt.ended(PromptEnd(Outcome.COMPLETED))
    prompt.disrupted(odd, offset_seconds=1.0)
    prompt.loop_detected(LoopType.TOTAL_TOOL_CALLS)
    assert [name for name, _ in door.events()] == [written.PROMPT_END, written.LOOP_DETECTED]
    assert drop_count(door) == 8


@pytest.mark.parametrize("offset", ["1.0", None, TRICKY, b"1"])
def test_after_an_offset_of_another_type_the_disruption_can_still_be_reported(door, offset):
    prompt = door.telemetry.prompt(assignments=ASSIGNED)
    prompt.ended(PromptEnd(Outcome.COMPLETED))
    prompt.disrupted(DisruptionKind.RETRY, offset_seconds=offset)
    assert drop_count(door) == 1
    prompt.disrupted(DisruptionKind.RETRY, offset_seconds=1)
    assert door.events()[-1][1][written.DISRUPTION_OFFSET] == 1.0


@pytest.mark.parametrize(
    ("field", "key"),
    [
        ("duration_seconds", written.DURATION),
        ("turns", written.TURNS),
        ("tool_calls", written.TOOL_CALLS),
        ("input_tokens", written.INPUT_TOKENS),
        ("output_tokens", written.OUTPUT_TOKENS),
        ("calls_after_would_stop", written.CALLS_AFTER_WOULD_STOP),
    ],
)
@pytest.mark.parametrize("odd", ["3", b"3", True, TRICKY, [3]])
def test_a_number_of_another_type_is_left_out_and_the_end_is_reported(door, field, key, odd):
    numbers = {"duration_seconds": 1.5, "turns": 1, "input_tokens": 1, "output_tokens": 1}
    end = PromptEnd(Outcome.COMPLETED, **{**numbers, field: odd})
    door.telemetry.prompt(assignments=ASSIGNED).ended(end)
    ((name, attributes),) = door.events()
    assert (name, key in attributes, drop_count(door)) == (written.PROMPT_END, False, 1)
    assert door.records().rejected == ()


@pytest.mark.parametrize("seconds", [math.inf, -math.inf, math.nan, 10**400, -1, 86_401])
def test_a_duration_that_is_not_finite_or_beyond_a_day_is_unknown(door, seconds):
    end = PromptEnd(Outcome.COMPLETED, duration_seconds=seconds)
    door.telemetry.prompt(assignments=ASSIGNED).ended(end)
    assert written.DURATION not in door.events()[0][1]
    assert drop_count(door) == 0


@pytest.mark.parametrize(
    "prompt_id",
    [
        pytest.param(f"{PATH}?token=abc", id="a path with a query"),
        pytest.param("write the report", id="a sentence"),
        pytest.param("a%20b", id="an escaped text"),
        pytest.param("ü", id="not ASCII"),
        pytest.param("\ud800", id="half a surrogate pair"),
        pytest.param("x" * 129, id="too long"),
        pytest.param("one\n", id="a line end"),
    ],
)
def test_a_digest_stands_for_a_prompt_id_that_may_say_something(door, prompt_id):
    prompt = door.telemetry.prompt(assignments=ASSIGNED, prompt_id=prompt_id)
    whole = prompt_id.encode(errors="surrogatepass")
    assert prompt.id == hashlib.blake2b(whole, digest_size=16).hexdigest()
    prompt.started()
    assert door.events()[0][1][written.PROMPT_ID] == prompt.id
    assert drop_count(door) == 0


@pytest.mark.parametrize("prompt_id", ["x" * 128, "s########1", "a_B.9:c@d~e-f#"])
def test_an_identifier_is_a_prompt_id_as_it_is(door, prompt_id):
    assert door.telemetry.prompt(assignments=ASSIGNED, prompt_id=prompt_id).id == prompt_id


@pytest.mark.parametrize("prompt_id", ["", 7, b"x", TRICKY])
def test_what_is_no_text_for_a_prompt_id_gives_a_random_one(door, prompt_id):
    ids = {door.telemetry.prompt(assignments=ASSIGNED, prompt_id=prompt_id).id for _ in range(9)}
    assert len(ids) == 9
    assert {len(prompt_id) for prompt_id in ids} == {32}
    assert drop_count(door) == 9


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(ASSIGNED[0], id="one of a guard that has one"),
        pytest.param(None, id="none"),
        pytest.param(TRICKY, id="something tricky"),
        pytest.param(Assignment("other", "enforced"), id="a mode that is none"),  # type: ignore[arg-type]  # as above
        pytest.param(Assignment(PATH, Mode.WARN), id="a guard that is a path"),
        pytest.param(Assignment(7, Mode.WARN), id="a guard that is a number"),  # type: ignore[arg-type]  # as above
        pytest.param(Assignment("other", Mode.WARN, assignment_id=PATH), id="an id that is a path"),
        pytest.param(Assignment("other", Mode.WARN, assignment_id=7), id="an id that is a number"),  # type: ignore[arg-type]  # as above
        pytest.param(Assignment("other", Mode.WARN, generation="7"), id="a generation as text"),  # type: ignore[arg-type]  # as above
    ],
)
def test_what_is_no_assignment_is_dropped_and_the_others_hold(door, odd):
    prompt = door.telemetry.prompt(assignments=[*ASSIGNED, odd])
    prompt.started()
    ((_, attributes),) = door.events()
    assert attributes[written.ASSIGNMENT_ID] == ("a1.repeated", "a1.duplicate")
    assert drop_count(door) == 1


@pytest.mark.parametrize("given", [{"assignments": 7}, {"route": "phone"}, {"route": None}])
def test_a_prompt_of_unknown_route_or_assignments_reports_nothing(door, given):
    prompt = door.telemetry.prompt(**{"assignments": ASSIGNED, **given})
    prompt.started()
    prompt.decided([STOP])
    prompt.ended(PromptEnd(Outcome.COMPLETED))
    assert (door.events(), drop_count(door)) == ([], 1)


@pytest.mark.parametrize("route", [Route.CRON, "cron"])
def test_an_excluded_route_is_no_fault(door, route):
    door.telemetry.prompt(assignments=ASSIGNED, route=route).started()
    assert (door.events(), drop_count(door)) == ([], 0)
