"""Suspects: delayed violations depend on the set of a prompt's records alone."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.prompt_events import StartDelta, TransitionDelta
from guardwave.control_plane.stores.evidence.delta.request import EvidenceBatch, PromptEvent
from guardwave.control_plane.stores.evidence.store import EvidenceStore
from guardwave.control_plane.stores.evidence.suspects import Severity, SuspectStore
from guardwave.control_plane.stores.keys import EvidenceKeys
from guardwave.reducer.vocabulary import Invariant
from tests.support.stores.one_prompt import GUARD, HERE, OWNER

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
SECOND = int(NOW.timestamp())
OVER = NOW + timedelta(minutes=2)


@pytest.fixture
def suspects(any_store):
    return SuspectStore(any_store)


def decisions(*names: str) -> list[PromptEvent]:
    """Return transitions numbered from 1.

    `-` is one that never arrives, `warned 2` names its candidate, `warned -` names none.
    """
    events = []
    for sequence, name in enumerate(names, start=1):
        kind, _, candidate = name.partition(" ")
        if kind == "-":
            continue
        delta = TransitionDelta(
            sequence=sequence,
            is_would_stop=kind == "would_stop",
            is_stop=kind == "stopped",
            is_unreliable_input=kind == "unreliable",
            is_warning=kind == "warned",
            ordinal=None if candidate == "-" else int(candidate or 1),
        )
        dedupe_key = DedupeKey(sequence, SECOND + sequence)
        day = NOW.date()
        events.append(
            PromptEvent(dedupe_key, OWNER, day, (GUARD,), True, delta, generation=sequence)
        )
    return events


def write(evidence: EvidenceStore, events: Sequence[PromptEvent], *, is_trusted: bool = True):
    batch = EvidenceBatch(tuple(events), now_second=SECOND, is_trusted=is_trusted)
    return evidence.write(HERE, batch)


def overdue(suspects: SuspectStore, at: datetime = OVER) -> list[str]:
    return sorted(suspected.invariant for suspected in suspects.overdue(HERE, at))


@pytest.mark.parametrize(
    ("names", "violated"),
    [
        pytest.param(["stopped"], ["stop_without_warn"], id="a stop alone"),
        pytest.param(["warned", "stopped"], [], id="a warning before the stop"),
        pytest.param(["tracked", "stopped"], ["stop_without_warn"], id="no warning before it"),
        pytest.param(["stopped", "warned"], ["stop_without_warn"], id="a warning after the stop"),
        pytest.param(
            ["warned 1", "stopped 2"], ["stop_without_warn"], id="a warning of another candidate"
        ),
        pytest.param(["-", "stopped"], [], id="a gap before the stop"),
        pytest.param(["stopped", "-", "reset"], ["stop_without_warn"], id="a gap after the stop"),
        pytest.param(
            ["warned", "unreliable", "stopped"],
            ["enforced_on_unreliable_input"],
            id="a stop after unreliable input",
        ),
        pytest.param(["warned", "stopped", "unreliable"], [], id="unreliable input after it"),
        pytest.param(
            ["warned", "unreliable", "-", "stopped"],
            ["enforced_on_unreliable_input"],
            id="both are known, whatever is between them",
        ),
        pytest.param(
            ["unreliable", "stopped"],
            ["enforced_on_unreliable_input", "stop_without_warn"],
            id="both at once",
        ),
        pytest.param(["warned -", "stopped 2"], [], id="a warning that names no candidate"),
        pytest.param(["warned 1", "stopped -"], [], id="a stop that names no candidate"),
        pytest.param(["would_stop", "unreliable", "would_stop"], [], id="nothing was stopped"),
    ],
)
@pytest.mark.parametrize("order", [pytest.param(1, id="in order"), pytest.param(-1, id="reverse")])
def test_a_stop_is_judged_by_the_whole_sequence_however_it_arrives(
    evidence, suspects, names, violated, order
):
    for event in decisions(*names)[::order]:
        write(evidence, [event])
    assert overdue(suspects, OVER - timedelta(seconds=1)) == []
    assert overdue(suspects) == violated


def test_a_repeated_number_leaves_open_what_came_before_the_stop(evidence, suspects):
    first, second = decisions("tracked", "stopped")
    again = PromptEvent(DedupeKey(9, SECOND), OWNER, NOW.date(), (GUARD,), True, first.delta)
    write(evidence, [first, again, second])
    assert overdue(suspects) == []


def test_a_number_that_is_repeated_later_takes_the_suspicion_back(any_store, evidence, suspects):
    first, second = decisions("tracked", "stopped")
    write(evidence, [first, second])
    assert any_store.zcard(EvidenceKeys(HERE).suspects) == 1
    write(
        evidence,
        [PromptEvent(DedupeKey(9, SECOND), OWNER, NOW.date(), (GUARD,), True, first.delta)],
    )
    assert any_store.zcard(EvidenceKeys(HERE).suspects) == 0


def test_a_suspicion_names_the_stratum_the_generation_and_the_prompt_that_show_it(
    evidence, suspects
):
    write(evidence, decisions("tracked", "stopped"))
    (found,) = suspects.overdue(HERE, OVER)
    assert (found.stratum, found.generation, found.severity) == (GUARD, 2, Severity.LATCHING)
    assert found.identity == "prompt-1:repeated_tool_failure:stop_without_warn"


@pytest.mark.parametrize(
    ("of_unreliable", "of_stop", "severity"),
    [
        pytest.param(True, True, Severity.LATCHING, id="both by a trusted producer"),
        pytest.param(False, True, Severity.COUNTED, id="the input by a stranger"),
        pytest.param(True, False, Severity.COUNTED, id="the stop by a stranger"),
    ],
)
def test_a_violation_is_trusted_when_all_that_shows_it_is(
    evidence, suspects, of_unreliable, of_stop, severity
):
    warned, unreliable, stopped = decisions("warned", "unreliable", "stopped")
    write(evidence, [warned])
    write(evidence, [unreliable], is_trusted=of_unreliable)
    write(evidence, [stopped], is_trusted=of_stop)
    (found,) = suspects.overdue(HERE, OVER)
    assert found.invariant is Invariant.ENFORCED_ON_UNRELIABLE_INPUT
    assert found.severity is severity


def test_a_decided_suspicion_is_over_and_counted_once(evidence, suspects):
    write(evidence, decisions("unreliable", "stopped"))
    first, second = suspects.overdue(HERE, OVER)
    assert suspects.decide(HERE, first, counted_as="untrusted_violation:x")
    assert not suspects.decide(HERE, first, counted_as="untrusted_violation:x")
    assert suspects.overdue(HERE, OVER) == (second,)
    assert suspects.decide(HERE, second)
    assert suspects.overdue(HERE, OVER) == ()
    assert evidence.health(HERE)["untrusted_violation:x"] == 1


def test_a_suspected_prompt_is_kept_until_it_is_decided(any_store, evidence, suspects):
    write(
        evidence,
        [PromptEvent(DedupeKey(7, SECOND), OWNER, NOW.date(), (GUARD,), True, StartDelta(12))],
    )
    (key,) = any_store.keys("ps:*")
    usual = any_store.ttl(key)
    write(evidence, decisions("stopped"))
    assert any_store.ttl(key) > 10 * usual
    for found in suspects.overdue(HERE, OVER):
        suspects.decide(HERE, found)
    assert any_store.ttl(key) <= usual


def test_a_prompt_that_stops_a_hundred_times_is_remembered_in_bounded_space(
    any_store, evidence, suspects
):
    write(evidence, decisions(*["stopped"] * 64))
    (key,) = any_store.keys("ps:*")
    size = any_store.strlen(key)
    write(evidence, decisions(*["stopped"] * 100))
    # A stop beyond the bound adds only the eight bytes of its token.
    assert any_store.strlen(key) < size + 20 + (100 - 64) * 8
    assert overdue(suspects) == ["stop_without_warn"]
