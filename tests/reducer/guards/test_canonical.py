import json
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.reducer.guards.calls import (
    MOST_BITS,
    MOST_DEPTH,
    MOST_VALUES,
    ToolCall,
    UnreadableCall,
    canonical_text,
    fingerprint,
)

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | st.text()
arguments = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, id="key order"),
        pytest.param({"x": {"a": 1, "b": 2}}, {"x": {"b": 2, "a": 1}}, id="key order below"),
        pytest.param([{"a": 1, "b": 2}], [{"b": 2, "a": 1}], id="key order in a list"),
        pytest.param({"n": 1}, {"n": 1.0}, id="a whole float"),
        pytest.param({"n": 0}, {"n": -0.0}, id="minus zero"),
        pytest.param({"n": 10**21}, {"n": 1e21}, id="a large whole float"),
        pytest.param(None, {}, id="null and empty arguments"),
        pytest.param({"l": (1, 2)}, {"l": [1, 2]}, id="a tuple is a list"),
    ],
)
def test_equal_arguments_share_one_fingerprint(left, right):
    assert canonical_text(left) == canonical_text(right)
    assert fingerprint("tool", left) == fingerprint("tool", right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param({"n": True}, {"n": 1}, id="true and 1"),
        pytest.param({"n": False}, {"n": 0}, id="false and 0"),
        pytest.param({"n": "1"}, {"n": 1}, id="a text and a number"),
        pytest.param({"n": None}, {}, id="a null field and an absent one"),
        pytest.param({"n": None}, {"n": "null"}, id="null and its name"),
        pytest.param([1, 2], [2, 1], id="array order"),
        pytest.param({"s": "a"}, {"s": "A"}, id="case"),
        pytest.param({"s": "a"}, {"s": "a "}, id="a trailing space"),
        pytest.param({"s": "\u00e9"}, {"s": "e\u0301"}, id="unicode forms"),
        pytest.param({"n": 2**53}, {"n": 2**53 + 1}, id="integers beyond 2^53"),
        pytest.param({"n": 1.5}, {"n": 1}, id="a fraction"),
        pytest.param({"n": -1}, {"n": 1}, id="a sign"),
        pytest.param([], {}, id="a list and an object"),
        pytest.param([[1], 2], [[1, 2]], id="where a list ends"),
    ],
)
def test_different_arguments_differ(left, right):
    assert canonical_text(left) != canonical_text(right)
    assert fingerprint("tool", left) != fingerprint("tool", right)


def test_json_escapes_are_not_part_of_the_identity():
    assert canonical_text(json.loads(r'{"s": "\u0041\/"}')) == canonical_text({"s": "A/"})


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param({"b": [1.0, True], "a": None}, '{"a":null,"b":[1,true]}', id="sorted, tight"),
        pytest.param({"s": "é\ud800"}, r'{"s":"\u00e9\ud800"}', id="ascii, lone surrogates too"),
        pytest.param("text", '"text"', id="a bare text"),
    ],
)
def test_the_canonical_text_is_this(text, written):
    assert canonical_text(text) == written


@pytest.mark.parametrize(
    ("value", "place"),
    [
        pytest.param({"a": float("nan")}, "arguments.a: not a finite number", id="not a number"),
        pytest.param({"a": [0, float("inf")]}, r"arguments.a\[1\]: not a finite", id="infinity"),
        pytest.param({"a": b"x"}, "arguments.a: bytes", id="bytes"),
        pytest.param({"a": date(2026, 1, 1)}, "arguments.a: date", id="a date"),
        pytest.param({"a": Decimal(1)}, "arguments.a: Decimal", id="a decimal"),
        pytest.param({"a": {1, 2}}, "arguments.a: set", id="a set"),
        pytest.param({1: "a"}, r"arguments\[key 1\]: the key is no text", id="a number as key"),
        pytest.param({"a": {"b.c-d_1": {1}}}, "arguments.a.b.c-d_1: set", id="names all the way"),
        pytest.param({"a": 1 << MOST_BITS}, "arguments.a: an integer of more", id="a long integer"),
    ],
)
def test_a_value_that_json_cannot_hold_is_refused_by_its_place(value, place):
    with pytest.raises(ValueError, match=place):
        canonical_text(value)


def test_the_longest_integer_is_compared():
    assert canonical_text((1 << MOST_BITS) - 1) != canonical_text((1 << MOST_BITS) - 2)


def test_a_value_that_is_not_json_is_reported_with_its_place():
    with pytest.raises(ValueError, match="is not a JSON value") as refused:
        canonical_text({"a": b"x"})
    assert str(refused.value) == (
        "arguments.a: bytes is not a JSON value; pass text, a number, true, false, null, "
        "a list or an object"
    )


@pytest.mark.parametrize(
    ("key", "place"),
    [
        pytest.param("a" * 64, ".<key>", id="an identifier of 64 characters"),
        pytest.param("a" * 65, "[key 3]", id="one of 65"),
        pytest.param("", "[key 3]", id="an empty one"),
        pytest.param("12 Main Street", "[key 3]", id="a text with spaces"),
        pytest.param("Jörg", "[key 3]", id="a name of a person"),
        pytest.param("/home/alice", "[key 3]", id="a path"),
        pytest.param("a\n", "[key 3]", id="a line break at the end"),
        pytest.param(7, "[key 3]", id="a number"),
        pytest.param(b"secret", "[key 3]", id="bytes"),
    ],
)
def test_a_key_is_given_by_its_position_unless_it_is_a_name(key, place):
    with pytest.raises(ValueError, match="arguments") as refused:
        canonical_text({"x": 1, "y": 2, key: float("nan")})
    place = place.replace("<key>", str(key))
    assert str(refused.value).startswith(f"arguments{place}: ")


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(json.loads('{"x": NaN}'), id="not a number"),
        pytest.param(json.loads('{"x": 1e999}'), id="a number beyond a float"),
        pytest.param(json.loads("[" * 70 + "]" * 70), id="a depth bomb"),
        pytest.param({"x": 1 << MOST_BITS}, id="a huge integer"),
        pytest.param([0] * MOST_VALUES, id="too many values"),
    ],
)
def test_a_call_that_no_digest_stands_for_equals_no_other(value):
    with pytest.raises(UnreadableCall):
        fingerprint("tool", value)
    assert ToolCall.of("c1", "tool", value) == ToolCall("c1", "tool", None)


@pytest.mark.parametrize("tool", ["", " ", "\n"])
def test_a_call_without_a_tools_name_equals_no_other(tool):
    assert ToolCall.of("c1", tool, {}) == ToolCall("c1", tool, None)


@pytest.mark.parametrize("value", [b"secret", date(2026, 1, 1), {1: "secret"}])
def test_a_value_only_a_hosts_code_can_pass_is_an_argument_error(value):
    with pytest.raises(ValueError, match="arguments") as refused:
        ToolCall.of("c1", "tool", {"a": value})
    assert not isinstance(refused.value, UnreadableCall)
    assert "secret" not in str(refused.value)


def test_a_refusal_shows_no_value_in_any_traceback():
    with pytest.raises(UnreadableCall) as refused:
        canonical_text({"card": {"4111 1111": [float("inf")]}})
    assert str(refused.value) == (
        "arguments.card[key 1][0]: not a finite number; pass a finite one"
    )
    assert refused.value.__suppress_context__


def in_lists(value: object) -> object:
    return [value]


def in_objects(value: object) -> object:
    return {"a": value}


@pytest.mark.parametrize("wrap", [in_lists, in_objects])
def test_arguments_are_read_to_their_bounded_depth(wrap):
    value: object = 1
    for _ in range(MOST_DEPTH):
        value = wrap(value)
    assert canonical_text(value).count("1") == 1
    with pytest.raises(ValueError, match="nested deeper than 64; flatten the arguments"):
        canonical_text(wrap(value))


def test_a_list_that_holds_itself_is_refused():
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="nested deeper"):
        canonical_text(loop)


def test_arguments_are_read_to_their_bounded_size():
    assert canonical_text([1] * (MOST_VALUES - 1)).count("1") == MOST_VALUES - 1
    with pytest.raises(ValueError, match="more than 100000 values; shorten the arguments"):
        canonical_text([1] * MOST_VALUES)


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        pytest.param("", "tool is blank", id="empty"),
        pytest.param("  ", "tool is blank", id="blank"),
        pytest.param(None, "tool is of type NoneType", id="none"),
        pytest.param(7, "tool is of type int", id="a number"),
    ],
)
def test_a_tool_without_a_name_is_refused(tool, words):
    with pytest.raises(ValueError, match=f"^{words}; pass its resolved name as a text$"):
        fingerprint(tool, {})


def test_a_fingerprint_is_32_hex_digits_that_never_change():
    assert fingerprint("run_shell", {"cmd": "ls", "n": 1}) == "f0f8d614a7bb834c0850793225e0ebc5"


def test_the_tool_is_part_of_the_fingerprint():
    assert fingerprint("a", {}) != fingerprint("b", {})
    assert fingerprint('a":{"x', 1) != fingerprint("a", {"x": 1})


def test_an_alias_stands_for_the_tool_that_is_meant():
    aliases = {"shell": "run_shell"}
    assert fingerprint("shell", {}, aliases=aliases) == fingerprint("run_shell", {})
    assert fingerprint("other", {}, aliases=aliases) == fingerprint("other", {})


@given(arguments)
def test_a_json_round_trip_never_changes_a_fingerprint(value):
    assert fingerprint("tool", json.loads(json.dumps(value))) == fingerprint("tool", value)


def tag_types(value: object) -> object:
    """Mark booleans, so that Python's equality no longer takes True for 1."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list):
        return [tag_types(item) for item in value]
    if isinstance(value, dict):
        return {key: tag_types(item) for key, item in value.items()}
    return value


@given(arguments, arguments)
def test_two_texts_are_equal_exactly_when_the_values_are(left, right):
    are_equal = tag_types(left) == tag_types(right)
    assert (canonical_text([left]) == canonical_text([right])) is are_equal


@given(st.dictionaries(st.text(), scalars, min_size=2), st.randoms())
def test_key_order_never_changes_a_fingerprint(fields, random):
    items = list(fields.items())
    random.shuffle(items)
    assert fingerprint("tool", dict(items)) == fingerprint("tool", fields)


def test_a_tool_call_keeps_a_digest_and_no_arguments():
    call = ToolCall.of("c1", "run_shell", {"cmd": "a secret"})
    assert call == ToolCall("c1", "run_shell", fingerprint("run_shell", {"cmd": "a secret"}))
    assert "secret" not in repr(call)


def test_a_tool_call_resolves_aliases_for_its_identity_alone():
    call = ToolCall.of(None, "shell", {}, aliases={"shell": "run_shell"})
    assert (call.tool, call.fingerprint) == ("shell", fingerprint("run_shell", {}))
