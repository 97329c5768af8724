import dataclasses
import re

import pytest

from guardwave.reducer.guards.transition import (
    BatchBucket,
    FailureBucket,
    Transition,
    is_identifier,
)
from guardwave.reducer.vocabulary import Decision, GuardPhase, Mode, Route

TRACKED = Transition(
    "repeated_tool_failure",
    Route.INTERACTIVE_FOREGROUND,
    Mode.SHADOW,
    GuardPhase.IDLE,
    GuardPhase.TRACKING,
    Decision.TRACKED,
)


@pytest.mark.parametrize(
    ("count", "word"),
    [(0, "0"), (1, "1-2"), (2, "1-2"), (3, "3-4"), (4, "3-4"), (5, "5-7"), (7, "5-7"), (8, "8+")],
)
def test_failures_are_reported_in_buckets(count, word):
    assert FailureBucket.of(count) == word


@pytest.mark.parametrize(("count", "word"), [(0, "0"), (1, "1"), (2, "2"), (3, "3+"), (99, "3+")])
def test_batches_are_reported_in_buckets(count, word):
    assert BatchBucket.of(count) == word


@pytest.mark.parametrize("text", ["timeout", "E_404", "a.b-c", "x" * 64])
def test_a_class_of_errors_is_an_identifier(text):
    assert is_identifier(text)
    assert dataclasses.replace(TRACKED, error_type=text).error_type == text


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("x" * 65, id="too long"),
        pytest.param("no such file: /etc/x", id="an error text"),
        pytest.param("timeout\n", id="a line end"),
        pytest.param(500, id="a number"),
        pytest.param(b"timeout", id="bytes"),
    ],
)
def test_an_error_text_cannot_be_passed_on(text):
    assert not is_identifier(text)
    whole = (
        "^error_type is not 1 to 64 of A-Z a-z 0-9 _ . -; "
        "leave out a text that is not a class of errors$"
    )
    with pytest.raises(ValueError, match=whole):
        dataclasses.replace(TRACKED, error_type=text)


def test_a_transition_of_no_streak_has_no_number_and_counts_nothing():
    assert (TRACKED.candidate_ordinal, TRACKED.failure_count, TRACKED.batch_count) == (
        0,
        None,
        None,
    )


def test_a_transition_has_no_field_for_tool_data():
    sensitive = re.compile("argument|result|text|message|stack|path|server|user|owner|prompt|key")
    assert not [f.name for f in dataclasses.fields(Transition) if sensitive.search(f.name)]
