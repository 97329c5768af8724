"""Eligibility: the owners that may get more than shadow, and every reason against it."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.reducer.rollout.eligibility import (
    SENTENCES,
    OwnerFacts,
    Ownership,
    Question,
    is_stable,
    lowered_mode,
    reasons_against,
    recent,
)
from guardwave.reducer.vocabulary import Mode, Reason, Route
from tests.strategies import TODAY, owner_facts, pins, producers, questions

KNOWN = OwnerFacts(
    ownership=Ownership.KNOWN,
    is_trusted=True,
    versions={"1.0.0": TODAY},
    producers={"collector": TODAY},
)
ASKED = Question("1.0.0", Route.INTERACTIVE_FOREGROUND, TODAY)


def ago(days: int):
    return TODAY - timedelta(days=days)


def against(facts, question, *, pin=("1.0.0", "1.1.0"), trusted=("collector",)):
    return reasons_against(facts, question, version_pin=pin, trusted_producers=frozenset(trusted))


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(KNOWN, id="seen today"),
        pytest.param(replace(KNOWN, versions={}, producers={}), id="never seen in telemetry"),
        pytest.param(
            replace(KNOWN, versions={"1.0.0": TODAY, "1.1.0": ago(1)}), id="two pinned versions"
        ),
        pytest.param(replace(KNOWN, versions={"0.9.0": ago(8)}), id="an old version 8 days ago"),
        pytest.param(replace(KNOWN, producers={"stranger": ago(8)}), id="a stranger 8 days ago"),
    ],
)
def test_an_owner_without_any_reason_against_it_is_eligible(facts):
    assert against(facts, ASKED) == ()


@pytest.mark.parametrize(
    ("facts", "question", "reasons"),
    [
        pytest.param(
            KNOWN,
            replace(ASKED, names_environment=False),
            [Reason.ENVIRONMENT_ATTRIBUTE_MISSING],
            id="no environment named",
        ),
        *(
            pytest.param(
                KNOWN, replace(ASKED, route=route), [Reason.ROUTE_EXCLUDED], id=f"route {route}"
            )
            for route in (*Route, None)
            if route is not Route.INTERACTIVE_FOREGROUND
        ),
        pytest.param(None, ASKED, [Reason.UNKNOWN_OWNER], id="nothing known"),
        pytest.param(
            replace(KNOWN, ownership=None, is_trusted=False),
            ASKED,
            [Reason.UNKNOWN_OWNER],
            id="seen in telemetry, but nobody stated its facts",
        ),
        pytest.param(
            replace(KNOWN, ownership=Ownership.UNKNOWN),
            ASKED,
            [Reason.OWNERSHIP_UNKNOWN],
            id="ownership unknown",
        ),
        pytest.param(
            replace(KNOWN, is_trusted=False),
            ASKED,
            [Reason.PRODUCER_UNTRUSTED],
            id="the owner is not trusted",
        ),
        pytest.param(
            replace(KNOWN, producers={"collector": TODAY, "stranger": ago(7)}),
            ASKED,
            [Reason.PRODUCER_UNTRUSTED],
            id="one of its producers is not trusted",
        ),
        pytest.param(
            KNOWN, replace(ASKED, version=None), [Reason.VERSION_UNKNOWN], id="no version asked"
        ),
        pytest.param(
            KNOWN,
            replace(ASKED, version="2.0.0"),
            [Reason.VERSION_NOT_PINNED],
            id="a version that is not pinned",
        ),
        pytest.param(
            replace(KNOWN, versions={"1.0.0": TODAY, "2.0.0": ago(7)}),
            ASKED,
            [Reason.MIXED_VERSIONS],
            id="another version within 7 days",
        ),
        pytest.param(
            replace(KNOWN, ownership=None, versions={"2.0.0": TODAY}),
            ASKED,
            [Reason.UNKNOWN_OWNER, Reason.MIXED_VERSIONS],
            id="unknown, and seen with another version",
        ),
        pytest.param(
            OwnerFacts(Ownership.UNKNOWN, False, {"2.0.0": TODAY}, {"stranger": TODAY}),
            Question("2.0.0", Route.CRON, TODAY, names_environment=False),
            [
                Reason.ENVIRONMENT_ATTRIBUTE_MISSING,
                Reason.ROUTE_EXCLUDED,
                Reason.OWNERSHIP_UNKNOWN,
                Reason.PRODUCER_UNTRUSTED,
                Reason.VERSION_NOT_PINNED,
                Reason.MIXED_VERSIONS,
            ],
            id="everything at once",
        ),
    ],
)
def test_each_reason_against_an_owner_is_named(facts, question, reasons):
    assert list(against(facts, question)) == reasons


@given(st.none() | owner_facts, questions, pins, st.frozensets(producers))
def test_reasons_come_once_each_and_most_important_first(facts, question, pin, trusted):
    found = against(facts, question, pin=pin, trusted=trusted)
    assert list(found) == [reason for reason in Reason if reason in found]


@given(owner_facts, questions)
def test_an_empty_pin_makes_nobody_eligible(facts, question):
    assert against(facts, question, pin=())


@pytest.mark.parametrize(
    ("days", "counts"),
    [
        pytest.param(-1, True, id="tomorrow, by a clock that is ahead"),
        pytest.param(0, True, id="today"),
        pytest.param(7, True, id="exactly 7 days ago"),
        pytest.param(8, False, id="8 days ago"),
    ],
)
def test_the_memory_is_seven_days_long(days, counts):
    assert recent({"2.0.0": ago(days)}, TODAY) == ({"2.0.0"} if counts else set())
    facts = replace(KNOWN, versions={"2.0.0": ago(days)}, producers={"stranger": ago(days)})
    expected = (Reason.PRODUCER_UNTRUSTED, Reason.MIXED_VERSIONS) if counts else ()
    assert against(facts, ASKED) == expected


@pytest.mark.parametrize(
    ("active", "complete", "stable"),
    [
        pytest.param([1, 2, 3], range(1, 8), True, id="3 of the last 7"),
        pytest.param([1, 2], range(1, 8), False, id="2 of the last 7"),
        pytest.param([1, 2, 8], range(1, 11), False, id="the third lies before the last 7"),
        pytest.param([1, 2, 7], range(1, 11), True, id="the third is the seventh"),
        pytest.param([1, 2, 9], [1, 2, 5, 6, 7, 8, 9], True, id="gap days are not counted"),
        pytest.param([1, 2, 3], [1, 2], False, id="one of them is not complete"),
        pytest.param([1, 2, 3], [], False, id="no day is complete"),
        pytest.param([0, 1, 2, 3], range(1, 4), True, id="only 3 days are complete"),
    ],
)
def test_a_stable_owner_had_prompts_on_three_of_the_last_seven_complete_days(
    active, complete, stable
):
    facts = replace(KNOWN, prompt_days=frozenset(map(ago, active)))
    assert is_stable(facts, tuple(sorted(map(ago, complete)))) is stable


@pytest.mark.parametrize("phase", Mode)
@pytest.mark.parametrize(
    ("route", "ceiling"),
    [
        pytest.param(Route.INTERACTIVE_FOREGROUND, Mode.SHADOW, id="foreground"),
        pytest.param(None, Mode.SHADOW, id="unknown route"),
        pytest.param(Route.CRON, Mode.OFF, id="cron"),
        pytest.param(Route.NOTIFICATION, Mode.OFF, id="notification"),
        pytest.param(Route.BACKGROUND, Mode.OFF, id="background"),
        pytest.param(Route.CHANNEL, Mode.OFF, id="channel"),
    ],
)
def test_an_ineligible_owner_gets_shadow_at_most_and_off_away_from_the_foreground(
    phase, route, ceiling
):
    assert lowered_mode(phase, route) is ceiling.at_most(phase)


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_has_one_sentence(reason):
    sentence = SENTENCES[reason]
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert set(SENTENCES) == set(Reason)
