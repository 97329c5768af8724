from typing import Any

import pytest

from guardwave.reducer.guards.repeated_failure import Observation, Receipt, SettledBatch, settle

WORD: Any = "a word"


def receipt(ordinal, call_id, terminal="success"):
    return Receipt(ordinal, Observation(call_id, "fetch", terminal_status=terminal))


def settle_batch(admitted, *receipts):
    return settle(admitted, receipts, is_input_reliable=True)


def test_one_receipt_for_each_admitted_call_proves_the_batch():
    batch = settle_batch(["a", "b"], receipt(1, "a"), receipt(2, "b"))
    assert batch.is_complete
    assert [observation.call_id for observation in batch.observations] == ["a", "b"]


def test_receipts_may_arrive_in_any_order():
    assert settle_batch(["a", "b"], receipt(2, "b"), receipt(1, "a")).is_complete


def test_an_id_that_was_admitted_twice_needs_one_receipt():
    assert settle_batch(["a", "a"], receipt(1, "a")).is_complete


def test_no_calls_need_no_receipts():
    assert settle_batch([]) == SettledBatch((), is_complete=True, is_input_reliable=True)


@pytest.mark.parametrize("ordinal", [1, 2, 9])
def test_a_late_second_terminal_frame_is_ignored(ordinal):
    late = receipt(ordinal, "a", terminal="error")
    batch = settle_batch(["a", "b"], receipt(1, "a"), receipt(2, "b"), late)
    assert batch.is_complete
    assert [observation.terminal_status for observation in batch.observations] == [
        "success",
        "success",
    ]


@pytest.mark.parametrize(
    "receipts",
    [
        pytest.param([], id="none"),
        pytest.param([receipt(1, "a")], id="one too few"),
        pytest.param([receipt(1, "a"), receipt(3, "b")], id="a gap"),
        pytest.param([receipt(0, "a"), receipt(1, "b")], id="counted from zero"),
        pytest.param([receipt(1, "a"), receipt(1, "b")], id="one place twice"),
        pytest.param([receipt(1, "a"), receipt(1, "a")], id="one call twice"),
        pytest.param([receipt(1, "a"), receipt(2, "x")], id="another call's"),
        pytest.param([receipt(1, "a"), receipt(2, "b"), receipt(3, "x")], id="one too many"),
        pytest.param([receipt(1, "a"), receipt(2, "b"), receipt(3, None)], id="one without id"),
    ],
)
def test_anything_else_proves_nothing(receipts):
    assert not settle_batch(["a", "b"], *receipts).is_complete


def test_observations_stay_in_an_incomplete_batch():
    batch = settle_batch(["a", "b"], receipt(1, "a"), receipt(2, "x"))
    assert [observation.call_id for observation in batch.observations] == ["a", "x"]


@pytest.mark.parametrize("name", ["is_input_reliable", "has_external_input", "has_queued_prompt"])
@pytest.mark.parametrize("value", [True, False])
def test_input_that_came_meanwhile_is_carried_along(name, value):
    batch = settle([], [], **({"is_input_reliable": not value} | {name: value}))
    assert getattr(batch, name) is value


def test_by_default_nobody_spoke_meanwhile():
    batch = settle_batch([])
    assert (batch.has_external_input, batch.has_queued_prompt) == (False, False)
    direct = SettledBatch((), is_complete=True, is_input_reliable=True)
    assert (direct.has_external_input, direct.has_queued_prompt) == (False, False)


@pytest.mark.parametrize(
    ("admitted", "receipts", "words"),
    [
        pytest.param("ab", [], "^admitted is a text; pass the collection of", id="a text for ids"),
        pytest.param(["a", 7], [], "admitted is of type int; pass the ids as texts", id="a number"),
        pytest.param(["a"], [receipt(True, "a")], "ordinal is of type bool", id="True for 1"),
        pytest.param(["a"], [receipt("1", "a")], "ordinal is of type str", id="a text for 1"),
        pytest.param(["a"], [Receipt(1, WORD)], "observation is of type str; pass", id="a word"),
    ],
)
def test_receipts_of_another_type_are_refused(admitted, receipts, words):
    with pytest.raises(ValueError, match=words):
        settle_batch(admitted, *receipts)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({"observations": []}, "observations is of type list; pass a tuple", id="list"),
        pytest.param(
            {"observations": (7,)}, "one of observations is of type int", id="no observation"
        ),
        pytest.param({"is_complete": 1}, "is_complete is of type int; pass True", id="complete"),
        pytest.param({"is_input_reliable": "no"}, "is_input_reliable is of type str", id="input"),
        pytest.param({"has_external_input": None}, "has_external_input is of", id="external"),
        pytest.param({"has_queued_prompt": 0}, "has_queued_prompt is of type int", id="queued"),
    ],
)
def test_a_batch_of_another_type_is_refused_by_field(fields, words):
    whole = {"observations": (), "is_complete": True, "is_input_reliable": True}
    with pytest.raises(ValueError, match=words):
        SettledBatch(**(whole | fields))
