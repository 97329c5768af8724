"""Violations by the set of a prompt's records, computed once more here, however they arrive."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from control_plane.stores.evidence_events import EvidenceBatch, PromptEvent
from control_plane.stores.keys import EvidenceKeys
from control_plane.stores.prompt_news import Transitioned
from control_plane.stores.seen import Seen
from control_plane.stores.suspects import SuspectStore, Worth
from reducer.vocabulary import Invariant
from tests.control_plane.stores.one_prompt import GUARD, HERE, OWNER

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
SECOND = int(NOW.timestamp())
OVER = NOW + timedelta(minutes=2)
MOST = 64
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Told:
    """A numbered transition, and whether a trusted producer tells it."""

    news: Transitioned
    is_trusted: bool

    @property
    def number(self) -> int:
        assert self.news.sequence is not None
        return self.news.sequence

    def event(self) -> PromptEvent:
        seen = Seen(self.number, SECOND)
        return PromptEvent(
            seen, OWNER, NOW.date(), (GUARD,), True, self.news, generation=self.number
        )


@st.composite
def told_in_any_order(draw: st.DrawFn) -> list[Told]:
    sequences = draw(st.permutations(range(1, 10)))
    kinds = st.sampled_from(("tracked", "warned", "stopped", "stopped", "unreliable"))
    return [
        told(
            sequence,
            draw(kinds),
            draw(st.sampled_from((1, 1, 2, None))),
            is_trusted=draw(st.booleans()),
        )
        for sequence in sequences[: draw(st.integers(2, 9))]
    ]


def told(sequence: int, kind: str, ordinal: int | None = 1, *, is_trusted: bool = True) -> Told:
    news = Transitioned(
        sequence=sequence,
        is_would_stop=False,
        is_stop=kind == "stopped",
        is_unreliable_input=kind == "unreliable",
        is_warning=kind == "warned",
        ordinal=ordinal,
    )
    return Told(news, is_trusted)


def is_explained(stop: Told, history: Sequence[Told]) -> bool:
    """Whether a warning came before the stop, or may have come in a gap."""
    known = {each.number for each in history}
    if not known.issuperset(range(1, stop.number)):
        return True
    return any(
        each.news.is_warning
        and each.number < stop.number
        and (
            each.news.ordinal == stop.news.ordinal or None in (each.news.ordinal, stop.news.ordinal)
        )
        for each in history
    )


def violations(history: Sequence[Told]) -> set[tuple[Invariant, Worth]]:
    """Return what the records show, each invariant by the most that it is worth."""
    worth: dict[Invariant, Worth] = {}
    for stop in (each for each in history if each.news.is_stop):
        shown = []
        if not is_explained(stop, history):
            shown.append((Invariant.STOP_WITHOUT_WARN, stop.is_trusted))
        shown += [
            (Invariant.ENFORCED_ON_UNRELIABLE_INPUT, stop.is_trusted and each.is_trusted)
            for each in history
            if each.news.is_unreliable_input and each.number < stop.number
        ]
        for invariant, is_trusted in shown:
            found = Worth.LATCHING if is_trusted else Worth.COUNTED
            worth[invariant] = max(found, worth.get(invariant, found))
    return set(worth.items())


def write(evidence, environment: str, history: Sequence[Told]) -> None:
    for is_trusted, part in itertools.groupby(history, key=lambda each: each.is_trusted):
        events = tuple(each.event() for each in part)
        batch = EvidenceBatch(events, now_second=SECOND, is_trusted=is_trusted)
        evidence.write(environment, batch)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(history=told_in_any_order(), cut=st.integers(0, 9))
def test_what_is_violated_depends_on_the_records_alone(any_store, evidence, history, cut):
    suspects, ways = SuspectStore(any_store), []
    in_order = sorted(history, key=lambda each: each.number)
    for order in (history, in_order):
        environment = f"suspects-{next(_numbers)}"
        write(evidence, environment, order[:cut])
        write(evidence, environment, order[cut:])
        ways.append(suspects.overdue(environment, OVER))
        waiting = any_store.zcard(EvidenceKeys(environment).suspects)
        assert waiting == bool(violations(history))
    for found in ways:
        assert {(each.invariant, each.worth) for each in found} == violations(history)
    first, second = ({(each.invariant, each.generation) for each in found} for found in ways)
    assert first == second


def test_of_many_stops_the_first_are_judged_whichever_comes_first(any_store, evidence):
    warned = [told(1, "warned"), *(told(at, "stopped") for at in range(2, MOST + 1))]
    for last, of_others, violated in ((MOST + 1, 2, 1), (MOST + 2, 2, 0)):
        filled = [*warned, *(told(at, "stopped") for at in range(MOST + 1, last))]
        history = [*filled, told(last, "stopped", of_others)]
        for order in (history, history[::-1]):
            environment = f"suspects-{next(_numbers)}"
            write(evidence, environment, order)
            assert len(SuspectStore(any_store).overdue(environment, OVER)) == violated


def test_of_too_many_candidates_warned_of_no_stop_is_judged_whichever_comes_first(
    any_store, evidence
):
    for many, violated in ((MOST, 1), (MOST + 1, 0)):
        warnings = [told(at, "warned", at) for at in range(1, many + 1)]
        history = [*warnings, told(many + 1, "stopped", many + 1)]
        for order in (history, history[::-1]):
            environment = f"suspects-{next(_numbers)}"
            write(evidence, environment, order)
            assert len(SuspectStore(any_store).overdue(environment, OVER)) == violated


def test_of_a_candidate_that_is_warned_of_again_only_the_first_warning_is_kept(any_store, evidence):
    write(evidence, HERE, [told(1, "warned"), told(2, "warned")])
    (key,) = any_store.keys("ps:*")
    size = any_store.strlen(key)
    again = [told(at, "warned") for at in range(3, 300)]
    write(evidence, HERE, again)
    # The eight bytes by which each is known, and some for numbers that take more of them.
    assert any_store.strlen(key) <= size + 8 * len(again) + 8
