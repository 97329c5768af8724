from hypothesis import given
from hypothesis import strategies as st

from guardwave.control_plane.ingest.model.identity import (
    canonical,
    digest63,
    event_identity,
    prompt_digest,
)
from guardwave.control_plane.ingest.model.otlp_values import KeyValues

WHO = ("internal", "identical_call", "AAAAAAAAAAAAAAAA")
WHAT = {"event_name": "agent.guard.transition", "prompt_id": "p", "part": "1"}


def test_the_digest_is_the_upper_63_bits_of_blake2b():
    # printf '\0\0\0\1a' | b2sum --length=64
    assert digest63("a") == 0x4D9B22915253467C >> 1


@given(st.text())
def test_the_digest_fits_a_signed_64_bit_integer_with_room(text):
    assert -(2**62) <= digest63(text) < 2**62


@given(st.lists(st.text(max_size=5), max_size=4), st.lists(st.text(max_size=5), max_size=4))
def test_different_fields_give_different_digests(first, second):
    assert (digest63(*first) == digest63(*second)) is (first == second)


@given(st.text(), st.text())
def test_the_identity_of_an_event_fits_a_signed_64_bit_integer_too(prompt_id, part):
    identity = event_identity(*WHO, event_name="e", prompt_id=prompt_id, part=part)
    assert 0 <= identity < 2**63


@given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), unique=True))
def test_different_events_of_different_prompts_have_different_identities(events):
    found = {
        event_identity(*WHO, event_name="e", prompt_id=prompt, part=part) for prompt, part in events
    }
    assert len(found) == len(events)


def test_a_prompt_has_another_name_in_the_store_than_in_its_identities():
    suffix, half = prompt_digest(WHO[2], "p")
    assert int(suffix, 16) >> 1 != half


def test_one_prompt_under_two_guards_is_two_events():
    other = ("internal", "repeated_tool_failure", WHO[2])
    assert event_identity(*WHO, **WHAT) != event_identity(*other, **WHAT)


def test_the_sequence_tells_transitions_apart_and_a_retry_does_not():
    assert event_identity(*WHO, **WHAT) == event_identity(*WHO, **WHAT)
    assert event_identity(*WHO, **WHAT) != event_identity(*WHO, **{**WHAT, "part": "2"})


def test_the_same_event_in_another_environment_is_another():
    assert event_identity(*WHO, **WHAT) != event_identity("public", *WHO[1:], **WHAT)


def test_equal_numbers_are_equal_whatever_their_encoding():
    assert canonical(12) == canonical(12.0)
    assert canonical(1) != canonical(True) != canonical("1")


def test_values_of_different_kinds_are_different():
    values = [None, "", "n1", 1, 1.5, True, False, b"", (), ("a",), KeyValues(()), ("a", "b")]
    values += [("a', 'b",), KeyValues((("a", "b"),)), float("nan"), float("inf"), "unset", "true"]
    assert len({canonical(value) for value in values}) == len(values)
