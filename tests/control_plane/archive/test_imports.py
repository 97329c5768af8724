"""Imports: foreign evidence is judged, raises no mode, and gets no day of this store."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from guardwave.control_plane.archive.export import export_archive
from guardwave.control_plane.archive.imports import import_archive
from guardwave.control_plane.archive.lines import Head, Line
from guardwave.control_plane.commands.owners import state_owner_facts
from guardwave.control_plane.commands.rollback import roll_back
from guardwave.control_plane.core.errors import EvaluationStale, Latched
from guardwave.control_plane.core.state import PromotionStatus
from guardwave.reducer.rollout.days import day_start
from guardwave.reducer.vocabulary import Mode, Verdict
from tests.support.hosts import Calendar, Host
from tests.support.latches import release
from tests.support.lives import OWNERS, Life
from tests.support.worlds import KNOWN, OPERATOR, WHY, context_over

THERE = "elsewhere"


def renamed(lines: Iterable[Line]) -> Iterable[Line]:
    """Yield an archive's lines as one of another environment, for which the store is empty."""
    for line in lines:
        yield replace(line, environment=THERE) if isinstance(line, Head) else line


def imported(life: Life) -> Life:
    """Export an environment and import it; return the other one, with owners of its own."""
    calendar = Calendar(life.calendar.now)
    context = context_over(life.store, clock=calendar.clock)
    lines = renamed(export_archive(life.context, life.environment))
    import_archive(context, iter(lines), actor=OPERATOR, reason=WHY)
    owners = tuple(f"{THERE}-owner-{number}" for number in range(OWNERS))
    facts = dict.fromkeys(owners, KNOWN)
    state_owner_facts(context, THERE, facts, actor=OPERATOR, reason=WHY)
    return Life(context, calendar, Host(context, environment=THERE), life.store, THERE, owners)


@pytest.fixture
def life(store):
    """A week and a day of shadow."""
    found = Life.begin(store)
    found.live(7)
    return found


def acknowledge(there: Life) -> None:
    assert release(there.context, THERE).latch is None


def test_what_was_imported_is_judged_and_promotes_nobody(life):
    there = imported(life)
    evaluation = there.evaluate()
    assert (evaluation.verdict, len(evaluation.days_used)) == (Verdict.WITHIN, 7)
    with pytest.raises(Latched):
        there.ask_promotion(evaluation, Mode.WARN)
    acknowledge(there)
    with pytest.raises(EvaluationStale):
        there.ask_promotion(evaluation, Mode.WARN)
    assert there.evaluate().verdict == Verdict.NO_DATA
    assert there.rollout.phase is Mode.SHADOW


@pytest.mark.parametrize(
    "is_rolled_back",
    [pytest.param(True, id="rolled back first"), pytest.param(False, id="acknowledged at once")],
)
def test_days_lived_elsewhere_and_here_are_never_added(store, is_rolled_back):
    life = Life.begin(store)
    life.live(4)
    there = imported(life)
    if is_rolled_back:
        assert roll_back(there.context, THERE, actor=OPERATOR, reason=WHY).is_verified
    acknowledge(there)
    there.live(7)
    assert there.evaluate().verdict == Verdict.UNPROVEN
    there.live(1)
    evaluation = there.evaluate()
    assert evaluation.verdict == Verdict.WITHIN
    assert min(evaluation.days_used) > life.today
    asked = there.ask_promotion(evaluation, Mode.WARN)
    there.work()
    assert there.promotion(asked.id).status is PromotionStatus.DONE


@pytest.mark.parametrize("days", [pytest.param(4, id="days missing"), pytest.param(7, id="enough")])
def test_days_under_the_latch_of_an_import_change_no_byte_of_its_verdict(store, days):
    life = Life.begin(store)
    life.live(days)
    there = imported(life)
    before = there.evaluate()
    there.live(4)
    after = there.evaluate()
    assert after.days_used == before.days_used
    assert after.result == before.result
    assert there.wave.closed_at == day_start(life.today)
