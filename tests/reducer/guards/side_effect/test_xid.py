import json
import math
import runpy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.reducer.guards.side_effect import FirstUse, XidDeclaration, first_use, xid_of
from guardwave.reducer.guards.side_effect.xid import SCHEME, field_values, normalise

FIXTURES = Path(__file__).parents[3] / "fixtures"
VECTORS = json.loads((FIXTURES / "xid_vectors.json").read_text(encoding="utf-8"))
XIDS = {vector["name"]: vector["xid"] for vector in VECTORS["vectors"]}
REFUND = XidDeclaration("refund", "order", ("reason",))


def test_the_vectors_are_of_this_scheme_and_what_the_independent_script_writes(tmp_path):
    assert VECTORS["scheme"] == SCHEME == "guardwave-xid-1"
    copy = tmp_path / "make_xid_vectors.py"
    copy.write_bytes((FIXTURES / copy.name).read_bytes())
    runpy.run_path(str(copy), run_name="__main__")
    assert json.loads((tmp_path / "xid_vectors.json").read_text(encoding="utf-8")) == VECTORS


@pytest.mark.parametrize(
    "vector", [pytest.param(vector, id=vector["name"]) for vector in VECTORS["vectors"]]
)
def test_an_xid_agrees_with_the_vectors(vector):
    given_declaration = vector["declaration"]
    declaration = XidDeclaration(
        given_declaration["identity"],
        given_declaration["resource"],
        tuple(given_declaration["fields"]),
    )
    assert xid_of(declaration, vector["arguments"], person=vector["person"]) == vector["xid"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param("an order", "white space around an order does not count", True, id="space"),
        pytest.param("an order", "case of an order counts", False, id="case of an id"),
        pytest.param("an order", "another person", False, id="person"),
        pytest.param("a number for an order", "digits for an order", True, id="number or digits"),
        pytest.param("a letter", "the same letter in other words", True, id="other words"),
        pytest.param("a letter to one", "a letter to one, twice", False, id="how often counts"),
        pytest.param("an amount", "an amount as a text", True, id="amount or text"),
        pytest.param("an amount", "an amount as a text with a fraction", False, id="10.00"),
        pytest.param("sharp s", "sharp s, folded", True, id="sharp s"),
    ],
)
def test_the_vectors_define_the_same_act(one, other, same):
    assert None not in {XIDS[one], XIDS[other]}
    assert (XIDS[one] == XIDS[other]) is same


@pytest.mark.parametrize("value", [math.nan, math.inf, b"x", object(), {"a": 1}, None, "", []])
def test_an_unusable_value_has_no_normal_form(value):
    assert normalise(value) is None
    assert normalise(["a", value]) is None


@pytest.mark.parametrize("resource", [math.nan, math.inf, -math.inf])
def test_a_resource_that_is_no_number_has_no_xid(resource):
    assert xid_of(XidDeclaration("refund", "order"), {"order": resource}, person="p") is None


def test_a_negative_resource_is_one():
    below = xid_of(XidDeclaration("refund", "order"), {"order": -4}, person="p")
    assert below is not None
    assert below == xid_of(XidDeclaration("refund", "order"), {"order": "-4"}, person="p")


@given(st.text())
def test_normalising_twice_is_normalising_once(text):
    once = normalise(text)
    assert once is None or normalise(once[0]) == once


@given(st.lists(st.text() | st.integers(), max_size=5), st.randoms(use_true_random=False))
def test_the_order_of_a_list_does_not_count(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    assert normalise(shuffled) == normalise(values)


@given(st.permutations(["a", "b.c", "d"]))
def test_the_order_of_declared_fields_does_not_count(paths):
    arguments = {"order": 1, "a": "x", "b": {"c": "y"}, "d": "z"}
    names = tuple(paths)
    found = xid_of(XidDeclaration("i", "order", names), arguments, person="p")
    assert found == xid_of(XidDeclaration("i", "order", ("a", "b.c", "d")), arguments, person="p")
    assert field_values(arguments, names) == (("a", ("x",)), ("b.c", ("y",)), ("d", ("z",)))


def test_another_identity_is_another_act_and_tools_may_share_one():
    arguments = {"order": 1, "reason": "late"}
    other = XidDeclaration("cancel", "order", ("reason",))
    assert xid_of(REFUND, arguments, person="p") != xid_of(other, arguments, person="p")


@pytest.mark.parametrize(
    ("identity", "resource", "fields", "words"),
    [
        pytest.param(" ", "order", (), "identity is ' '", id="blank identity"),
        pytest.param("refund", "", (), "resource is ''", id="empty resource"),
        pytest.param("refund", "order", ("a", "a"), "name one twice", id="a field twice"),
    ],
)
def test_an_empty_declaration_is_refused(identity, resource, fields, words):
    with pytest.raises(ValueError, match=words):
        XidDeclaration(identity, resource, fields)


class Shelf:
    """A store of the host: it counts how often it is read."""

    def __init__(self, **uses: FirstUse):
        self.uses, self.reads = uses, 0

    def read(self, key: str) -> FirstUse | None:
        self.reads += 1
        return self.uses.get(key)


def test_a_first_use_is_one_look_up_and_none_without_a_key():
    use = FirstUse("c1", "r1", 5, "mail")
    shelf = Shelf(known=use)
    assert (first_use(shelf, "known"), shelf.reads) == (use, 1)
    assert (first_use(shelf, "new"), shelf.reads) == (None, 2)
    assert (first_use(shelf, None), shelf.reads) == (None, 2)


@pytest.mark.parametrize("arguments", [{"order": "\ud800"}, {"order": "1", "reason": "\udc00"}])
def test_half_a_surrogate_pair_makes_no_key(arguments):
    assert xid_of(REFUND, arguments, person="ann") is None
