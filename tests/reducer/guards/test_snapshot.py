import pytest

from guardwave.reducer.guards.snapshot import Snapshot, seal, unseal


def test_a_sealed_state_names_its_guard_and_schema():
    assert seal("identical_call", 2, {"count": 3}) == {
        "guard": "identical_call",
        "schema": 2,
        "count": 3,
    }


def test_a_sealed_state_is_read_back():
    snapshot = unseal(seal("identical_call", 1, {"count": 3}), guard="identical_call", schema=1)
    assert snapshot is not None
    assert (snapshot.guard, snapshot.whole("count")) == ("identical_call", 3)


def test_a_state_of_an_older_schema_is_still_read():
    assert unseal(seal("g", 1, {}), guard="g", schema=2) is not None


def test_a_state_of_a_newer_schema_is_not_understood():
    assert unseal(seal("g", 3, {}), guard="g", schema=2) is None


@pytest.mark.parametrize(
    ("document", "words"),
    [
        pytest.param("text", "is no object", id="a text"),
        pytest.param({"schema": 1}, "snapshot of g is damaged: guard must be there", id="no guard"),
        pytest.param({"guard": "h", "schema": 1}, "guard is 'h' in a snapshot given to g", id="h"),
        pytest.param({"guard": "g"}, "schema must be there", id="no schema"),
        pytest.param({"guard": "g", "schema": "1"}, "schema must be a whole", id="a text schema"),
        pytest.param({"guard": "g", "schema": True}, "schema must be a whole", id="a true schema"),
        pytest.param({"guard": "g", "schema": 0}, "schema is 0; it starts at 1", id="schema 0"),
    ],
)
def test_only_a_snapshot_of_the_guard_is_read(document, words):
    with pytest.raises(ValueError, match=words):
        unseal(document, guard="g", schema=1)


FIELDS = Snapshot(
    "g",
    {"n": 0, "f": False, "t": "", "none": None, "o": {"k": 1}, "l": [1], "minus": -1, "yes": True},
)


def test_fields_are_read_by_type():
    assert FIELDS.whole("n") == 0
    assert FIELDS.flag("f") is False
    assert (FIELDS.text("t"), FIELDS.optional_text("t")) == ("", "")
    assert FIELDS.optional_text("none") is None
    assert FIELDS.mapping("o") == {"k": 1}
    assert FIELDS.items("l") == [1]


@pytest.mark.parametrize(
    ("read", "name", "expected"),
    [
        pytest.param(Snapshot.whole, "minus", "a whole number from 0", id="a negative count"),
        pytest.param(Snapshot.whole, "yes", "a whole number from 0", id="true as a count"),
        pytest.param(Snapshot.whole, "t", "a whole number from 0", id="a text as a count"),
        pytest.param(Snapshot.flag, "n", "true or false", id="a number as a flag"),
        pytest.param(Snapshot.text, "n", "a text", id="a number as a text"),
        pytest.param(Snapshot.text, "none", "a text", id="null as a text"),
        pytest.param(Snapshot.optional_text, "n", "a text", id="a number as an optional text"),
        pytest.param(Snapshot.mapping, "l", "an object", id="a list as an object"),
        pytest.param(Snapshot.items, "t", "a list", id="a text as a list"),
        pytest.param(Snapshot.items, "o", "a list", id="an object as a list"),
        pytest.param(Snapshot.whole, "absent", "there", id="a missing field"),
    ],
)
def test_a_wrong_field_is_named(read, name, expected):
    with pytest.raises(
        ValueError,
        match=f"^the snapshot of g is damaged: {name} must be {expected}; start the guard anew$",
    ):
        read(FIELDS, name)
