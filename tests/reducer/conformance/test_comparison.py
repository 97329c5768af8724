import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.reducer.conformance.vectors import first_difference
from guardwave.reducer.vocabulary import Mode

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
def test_every_value_holds_what_it_is_itself(value):
    assert first_difference(value, json.loads(json.dumps(value))) is None


@given(st.dictionaries(st.text(max_size=4), values), st.dictionaries(st.text(max_size=4), values))
def test_keys_that_nobody_expects_are_not_looked_at(expected, more):
    assert first_difference(expected, more | expected) is None


@given(values)
def test_an_object_without_keys_expects_nothing(found):
    assert first_difference({}, found) is None
    assert first_difference({"a": [{}]}, {"a": [found]}) is None


@pytest.mark.parametrize(
    ("expected", "found", "place"),
    [
        pytest.param({"a": 1}, {"a": True}, "/a", id="true is not 1"),
        pytest.param({"a": True}, {"a": 1}, "/a", id="1 is not true"),
        pytest.param({"a": False}, {"a": 0}, "/a", id="0 is not false"),
        pytest.param({"a": "1"}, {"a": 1}, "/a", id="a number is no text"),
        pytest.param({"a": None}, {"a": ""}, "/a", id="empty is not null"),
        pytest.param({"a": None}, {}, "/a", id="absent is not null"),
        pytest.param({"a": {"b": None}}, {"a": None}, "/a", id="null is no object"),
        pytest.param({"a": {}}, {}, "/a", id="a field that is not there"),
        pytest.param({"a": []}, {"a": {}}, "/a", id="an object is no list"),
        pytest.param({"a": "ab"}, {"a": ["a", "b"]}, "/a", id="a list is no text"),
        pytest.param({"a": {"b": 1}}, {"a": {"c": 1}}, "/a/b", id="inside an object"),
        pytest.param({"a": [1, 2]}, {"a": [1]}, "/a/1", id="a list too short"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, "/a/1", id="a list too long"),
        pytest.param({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "/a/1/b", id="inside a list"),
        pytest.param({"a": 1, "b": 2}, {"b": 3, "a": 4}, "/a", id="the first of two"),
        pytest.param({"a/b~c": 1}, {}, "/a~1b~0c", id="a key with signs of a pointer"),
        pytest.param({"a": b"x"}, {"a": object()}, "/a", id="what JSON cannot say"),
    ],
)
def test_a_difference_is_named_by_its_place(expected, found, place):
    differs = first_difference(expected, found)
    assert differs is not None
    assert differs.pointer == place


def test_a_difference_shows_both_values_as_json():
    assert first_difference([{"a": "x"}], [7], "/steps") == ("/steps/0", '{"a": "x"}', "7")


def test_a_missing_field_and_a_surplus_element_are_shown_as_nothing():
    assert first_difference({"a": 1}, {}) == ("/a", "1", "nothing")
    assert first_difference([1], []) == ("/0", "1", "nothing")
    assert first_difference([], [1]) == ("/0", "nothing", "1")


def test_words_and_tuples_of_a_machine_are_what_they_are_in_json():
    assert (
        first_difference({"mode": "warn", "ids": ["a"]}, {"mode": Mode.WARN, "ids": ("a",)}) is None
    )
    assert first_difference({"n": 1}, {"n": 1.0}) is None
