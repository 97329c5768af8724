"""Call names: the ids of a session, and the names of calls whose id comes again."""

import pytest

from guardwave.reducer.guards.duplicate_call_id.reduction import new_ids_of
from guardwave.reducer.guards.duplicate_call_id.state import BatchNaming, CallNames, LayeredIds
from tests.support.guards.calls import call, unreadable

LS = bytes.fromhex(str(call().fingerprint))
ONE, TWO = b"1" * 16, b"2" * 16


@pytest.mark.parametrize(
    ("older", "added", "sizes"),
    [
        pytest.param(4, 2, [6], id="half as many are joined"),
        pytest.param(5, 2, [5, 2], id="fewer than half are not"),
        pytest.param(1, 3, [4], id="more are joined"),
    ],
)
def test_layers_are_joined_when_the_newer_has_half_the_older(older, added, sizes):
    first = LayeredIds({f"a{at}": None for at in range(older)})
    both = first.plus({f"b{at}": None for at in range(added)})
    assert [len(layer) for layer in both._layers] == sizes


def test_layers_know_what_is_in_any_of_them_and_nothing_else():
    layers = LayeredIds({"a": ONE, "b": None}, {"b": TWO})
    assert [name in layers for name in "abc"] == [True, True, False]
    assert "a" not in LayeredIds()
    assert (layers["a"], layers["b"], list(layers), len(layers)) == (ONE, TWO, ["a", "b"], 2)
    with pytest.raises(KeyError, match="c"):
        layers["c"]


@pytest.mark.parametrize(
    ("calls", "firsts"),
    [
        pytest.param([call("a"), unreadable("b")], {"a": LS, "b": b""}, id="ids of their own"),
        pytest.param([call("a"), call("a", "pwd")], None, id="one id twice"),
        pytest.param([call("a"), call("old")], None, id="a known id"),
        pytest.param([call("a"), call(None)], None, id="no id"),
        pytest.param([call("a"), call(" ")], None, id="a blank id"),
        pytest.param([], None, id="no calls"),
    ],
)
@pytest.mark.parametrize("is_split", [True, False], ids=["two responses", "one response"])
def test_a_batch_is_ordinary_when_each_call_is_the_first_under_its_id(calls, firsts, is_split):
    responses = (tuple(calls[:1]), tuple(calls[1:])) if is_split else (tuple(calls),)
    assert new_ids_of(responses, {"old": None}) == firsts


def test_a_name_follows_the_last_number_that_was_tried_in_an_earlier_batch():
    naming = BatchNaming(CallNames("~", "g", LayeredIds({"a": ONE}), {"a": 5, "b": 7}, 3))
    assert naming.is_any_recorded is False
    assert [naming.take("a"), naming.take("a"), naming.take(None)] == ["a~6", "a~7", "g4"]
    assert naming.done() == CallNames(
        "~", "g", LayeredIds({"a": ONE, "a~6": None, "a~7": None, "g4": None}), {"a": 7, "b": 7}, 4
    )


def test_a_reserved_id_is_free_for_nobody_and_keeps_the_digest_it_had():
    naming = BatchNaming(CallNames("~", "g", LayeredIds({"a": ONE})))
    naming.reserve("a")
    naming.reserve("b")
    assert (naming.first_digest("a"), naming.first_digest("b"), naming.first_digest("c")) == (
        ONE,
        None,
        None,
    )
    assert naming.take("b") == "b~2"
    naming.record("c", TWO)
    naming.reserve("c")
    assert (naming.first_digest("c"), naming.is_any_recorded) == (TWO, True)
    assert dict(naming.done().ids) == {"a": ONE, "b": None, "b~2": None, "c": TWO}
