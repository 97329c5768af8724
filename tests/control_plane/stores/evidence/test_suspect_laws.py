"""Suspect laws: violations of all orders of records, against a second computation."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import DedupeKey
from guardwave.control_plane.stores.evidence.delta.prompt_events import TransitionDelta
from guardwave.control_plane.stores.evidence.delta.request import EvidenceBatch, PromptEvent
from guardwave.control_plane.stores.evidence.suspects import Severity, SuspectStore
from guardwave.control_plane.stores.keys import EvidenceKeys
from guardwave.reducer.vocabulary import Invariant
from tests.support.stores.one_prompt import GUARD, HERE, OWNER

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
SECOND = int(NOW.timestamp())
OVER = NOW + timedelta(minutes=2)
MOST = 64
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class NumberedTransition:
    """A numbered transition, and whether its producer is trusted."""

    delta: TransitionDelta
    is_trusted: bool

    @property
    def number(self) -> int:
        assert self.delta.sequence is not None
        return self.delta.sequence

    def event(self) -> PromptEvent:
        dedupe_key = DedupeKey(self.number, SECOND)
        return PromptEvent(
            dedupe_key, OWNER, NOW.date(), (GUARD,), True, self.delta, generation=self.number
        )


@st.composite
def shuffled_transitions(draw: st.DrawFn) -> list[NumberedTransition]:
    sequences = draw(st.permutations(range(1, 10)))
    kinds = st.sampled_from(("tracked", "warned", "stopped", "stopped", "unreliable"))
    return [
        transition(
            sequence,
            draw(kinds),
            draw(st.sampled_from((1, 1, 2, None))),
            is_trusted=draw(st.booleans()),
        )
        for sequence in sequences[: draw(st.integers(2, 9))]
    ]


def transition(
    sequence: int, kind: str, ordinal: int | None = 1, *, is_trusted: bool = True
) -> NumberedTransition:
    delta = TransitionDelta(
        sequence=sequence,
        is_would_stop=False,
        is_stop=kind == "stopped",
        is_unreliable_input=kind == "unreliable",
        is_warning=kind == "warned",
        ordinal=ordinal,
    )
    return NumberedTransition(delta, is_trusted)


def is_explained(stop: NumberedTransition, history: Sequence[NumberedTransition]) -> bool:
    """Whether a warning came before the stop, or may have come in a gap."""
    known = {record.number for record in history}
    if not known.issuperset(range(1, stop.number)):
        return True
    return any(
        record.delta.is_warning
        and record.number < stop.number
        and (
            record.delta.ordinal == stop.delta.ordinal
            or None in (record.delta.ordinal, stop.delta.ordinal)
        )
        for record in history
    )


def violations(history: Sequence[NumberedTransition]) -> set[tuple[Invariant, Severity]]:
    """Return the violations that the records show, each with its highest severity."""
    severity: dict[Invariant, Severity] = {}
    for stop in (record for record in history if record.delta.is_stop):
        shown = []
        if not is_explained(stop, history):
            shown.append((Invariant.STOP_WITHOUT_WARN, stop.is_trusted))
        shown += [
            (Invariant.ENFORCED_ON_UNRELIABLE_INPUT, stop.is_trusted and record.is_trusted)
            for record in history
            if record.delta.is_unreliable_input and record.number < stop.number
        ]
        for invariant, is_trusted in shown:
            found = Severity.LATCHING if is_trusted else Severity.COUNTED
            severity[invariant] = max(found, severity.get(invariant, found))
    return set(severity.items())


def write(evidence, environment: str, history: Sequence[NumberedTransition]) -> None:
    for is_trusted, part in itertools.groupby(history, key=lambda record: record.is_trusted):
        events = tuple(record.event() for record in part)
        batch = EvidenceBatch(events, now_second=SECOND, is_trusted=is_trusted)
        evidence.write(environment, batch)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(history=shuffled_transitions(), cut=st.integers(0, 9))
def test_violations_depend_on_the_set_of_records_alone(any_store, evidence, history, cut):
    suspects, results = SuspectStore(any_store), []
    ordered = sorted(history, key=lambda record: record.number)
    for order in (history, ordered):
        environment = f"suspects-{next(_numbers)}"
        write(evidence, environment, order[:cut])
        write(evidence, environment, order[cut:])
        results.append(suspects.overdue(environment, OVER))
        waiting = any_store.zcard(EvidenceKeys(environment).suspects)
        assert waiting == bool(violations(history))
    for found in results:
        assert {(suspected.invariant, suspected.severity) for suspected in found} == violations(
            history
        )
    first, second = (
        {(suspected.invariant, suspected.generation) for suspected in found} for found in results
    )
    assert first == second


def test_of_many_stops_the_first_are_judged_whichever_comes_first(any_store, evidence):
    warned = [transition(1, "warned"), *(transition(at, "stopped") for at in range(2, MOST + 1))]
    for last, of_others, violated in ((MOST + 1, 2, 1), (MOST + 2, 2, 0)):
        stops = [*warned, *(transition(at, "stopped") for at in range(MOST + 1, last))]
        history = [*stops, transition(last, "stopped", of_others)]
        for order in (history, history[::-1]):
            environment = f"suspects-{next(_numbers)}"
            write(evidence, environment, order)
            assert len(SuspectStore(any_store).overdue(environment, OVER)) == violated


def test_of_too_many_candidates_warned_of_no_stop_is_judged_whichever_comes_first(
    any_store, evidence
):
    for many, violated in ((MOST, 1), (MOST + 1, 0)):
        warnings = [transition(at, "warned", at) for at in range(1, many + 1)]
        history = [*warnings, transition(many + 1, "stopped", many + 1)]
        for order in (history, history[::-1]):
            environment = f"suspects-{next(_numbers)}"
            write(evidence, environment, order)
            assert len(SuspectStore(any_store).overdue(environment, OVER)) == violated


def test_of_a_candidate_that_is_warned_of_again_only_the_first_warning_is_kept(any_store, evidence):
    write(evidence, HERE, [transition(1, "warned"), transition(2, "warned")])
    (key,) = any_store.keys("ps:*")
    size = any_store.strlen(key)
    again = [transition(at, "warned") for at in range(3, 300)]
    write(evidence, HERE, again)
    # Each takes the eight bytes of its token, and larger numbers take some bytes more.
    assert any_store.strlen(key) <= size + 8 * len(again) + 8
