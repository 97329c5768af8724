"""Rollout pages: cohorts, the wave, telemetry, and the next step."""

from dataclasses import replace
from datetime import timedelta

import pytest

from guardwave.control_plane.commands.cohorts import CohortChange, set_cohort_mode
from guardwave.control_plane.commands.rollback import FoundViolation, latch, roll_back
from guardwave.control_plane.core.errors import NotFound
from guardwave.control_plane.queries.cards import card, telemetry
from guardwave.control_plane.queries.gates import gate_page
from guardwave.control_plane.queries.overview import guard_page, overview
from guardwave.control_plane.queries.page_models import CohortLine, NextStep, TelemetryState
from guardwave.control_plane.queries.rollbacks import rollback_page
from guardwave.reducer.contract import ASSIGNMENT_ID
from guardwave.reducer.vocabulary import Cohort, Invariant, Mode, Verdict
from tests.support.hosts import Host, Prompt, logs
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD, OPERATOR, WHY

VIOLATION = FoundViolation("record 1", Invariant.CONTRACT_VIOLATION, GUARD, Mode.WARN, 1)


@pytest.fixture
def life(store):
    found = Life.begin(store)
    found.live(3)
    return found


def shown(life: Life):
    held = life.context.environments.load(life.environment)
    assert held is not None
    return card(life.context, held, life.rollout)


def lower(life: Life, cohort: str, mode: Mode) -> None:
    set_cohort_mode(
        life.context,
        ENVIRONMENT,
        GUARD,
        cohort,
        change=CohortChange(mode=mode),
        actor=OPERATOR,
        reason=WHY,
    )


def test_each_phase_shows_its_cohorts_with_modes_and_sizes(life):
    assert shown(life).cohorts == (CohortLine(Cohort.EVERYONE, Mode.SHADOW, None),)
    life.promote(Mode.WARN)
    assert shown(life).cohorts == (
        CohortLine(Cohort.WARNED, Mode.WARN, 19, 8000),
        CohortLine(Cohort.HOLDBACK, Mode.SHADOW, 5),
    )
    life.promote(Mode.ENFORCE)
    assert shown(life).cohorts == (
        CohortLine(Cohort.ENFORCED, Mode.ENFORCE, 1, 500),
        CohortLine(Cohort.CONTROL, Mode.WARN, 23),
    )
    assert shown(life).enforced_share_bps == 500


def test_after_a_demotion_the_whole_roster_has_the_mode_of_the_phase(life):
    life.promote(Mode.WARN)
    life.promote(Mode.ENFORCE)
    lower(life, "enforced", Mode.WARN)
    assert shown(life).cohorts == (
        CohortLine(Cohort.WARNED, Mode.WARN, 24),
        CohortLine(Cohort.HOLDBACK, Mode.SHADOW, 0),
    )
    assert shown(life).wave is None


def test_a_wave_shows_how_many_of_its_days_count(life):
    wave = shown(life).wave
    assert wave is not None
    assert (wave.number, wave.complete_days, wave.declared_days) == (1, 3, 7)
    page = guard_page(life.context, ENVIRONMENT, GUARD)
    assert [day.reason for day in page.days] == [
        "the wave began during it",
        None,
        None,
        None,
        "it is not over yet",
    ]


def test_the_next_step_says_what_is_missing(life):
    step = shown(life).next_step
    assert step == NextStep(
        Mode.WARN,
        None,
        is_allowed=False,
        why_not="The shadow gate needs 7 complete days; 3 have passed.",
    )
    life.live(4)
    why_not = shown(life).next_step.why_not
    assert why_not == "The shadow gate has not been evaluated in this wave."
    assert life.evaluate().verdict == Verdict.WITHIN
    assert shown(life).next_step == NextStep(Mode.WARN, None, is_allowed=True, why_not=None)


def test_an_unproven_gate_speaks_for_itself(life):
    life.within(verdict="unproven", sentence="Not proven: too little data.")
    assert shown(life).next_step.why_not == "Not proven: too little data."


def test_an_evaluation_that_grew_old_allows_no_step(life):
    life.within()
    assert shown(life).next_step.is_allowed
    life.calendar.now += timedelta(hours=25)
    step = shown(life).next_step
    assert not step.is_allowed
    assert "25 h old, the policy allows 24 h; evaluate again" in (step.why_not or "")


def test_a_step_that_another_environment_must_take_first_is_not_offered(store):
    public = Life.begin(store, environment="public-cloud")
    public.live(1)
    public.within()
    step = shown(public).next_step
    assert not step.is_allowed
    reason = "public-cloud requires that internal took the step to warn first"
    assert (step.why_not or "").startswith(reason)


def test_a_latch_stops_every_step_and_says_how_it_ends(life):
    life.within()
    latch(life.context, ENVIRONMENT, [VIOLATION, replace(VIOLATION, identity="record 2")])
    found = shown(life)
    assert found.latch is not None
    assert found.open_violations == 2
    assert "acknowledge the rollback" in (found.next_step.why_not or "")


def test_the_ceiling_is_the_end_of_the_ladder(life):
    life.promote(Mode.WARN)
    life.promote(Mode.ENFORCE)
    step = shown(life).next_step
    assert (step.to, step.is_allowed) == (None, False)
    assert "ceiling of 5 % is reached" in (step.why_not or "")


def test_telemetry_flows_falls_silent_and_was_never_there(store):
    life = Life.begin(store)
    assert telemetry(life.context, ENVIRONMENT).state is TelemetryState.NO_RECORDS
    life.host.send_prompts(Prompt("p-1", [], life.calendar.now - timedelta(minutes=1)))
    assert telemetry(life.context, ENVIRONMENT).state is TelemetryState.FLOWING
    life.calendar.now += timedelta(minutes=16)
    found = telemetry(life.context, ENVIRONMENT)
    assert (found.state, found.last_record_age_seconds) == (TelemetryState.SILENT, 960)


def test_rejected_items_are_counted(life):
    before = telemetry(life.context, ENVIRONMENT).refused
    at = life.calendar.now - timedelta(minutes=1)
    life.host.send_prompts(Prompt("p-1", ["a1.forged"], at))
    life.host.send(logs([Prompt("p-2", [], at).start()], resource={"service.version": ""}))
    assert telemetry(life.context, ENVIRONMENT).refused == before + 3


def test_the_overview_shows_every_rollout_of_every_environment(store, life):
    Life.begin(store, environment="public-cloud", calendar=life.calendar)
    page = overview(life.context)
    assert [card.environment for card in page.cards] == [ENVIRONMENT, "public-cloud"]
    assert page.frame.environments == (ENVIRONMENT, "public-cloud")


def test_a_gate_page_offers_its_step_and_shows_the_result(life):
    life.live(4)
    done = life.evaluate()
    page = gate_page(life.context, ENVIRONMENT, GUARD, done.id)
    assert page.offer is not None
    assert (page.offer.to, page.offer.is_allowed, page.digest) == (Mode.WARN, True, done.digest)
    asked = life.ask_promotion(done, Mode.WARN)
    life.work()
    after = gate_page(life.context, ENVIRONMENT, GUARD, done.id)
    assert after.moved_on is not None
    assert after.offer is None
    assert [(promotion.promotion_id, promotion.status) for promotion in after.promotions] == [
        (asked.id, "done")
    ]


def test_an_evaluation_or_rollout_that_does_not_exist_has_no_page(life):
    with pytest.raises(NotFound, match="no gate evaluation 7"):
        gate_page(life.context, ENVIRONMENT, GUARD, 7)
    with pytest.raises(NotFound):
        guard_page(life.context, ENVIRONMENT, "identical_call")
    with pytest.raises(NotFound):
        rollback_page(life.context, "nowhere")


def test_the_rollback_page_says_who_would_get_shadow(life):
    assert rollback_page(life.context, ENVIRONMENT).consequences[0].moves == ()
    life.promote(Mode.WARN)
    life.promote(Mode.ENFORCE)
    (found,) = rollback_page(life.context, ENVIRONMENT).consequences
    assert [(move.cohort, move.owners, move.after) for move in found.moves] == [
        (Cohort.ENFORCED, 1, Mode.SHADOW),
        (Cohort.CONTROL, 23, Mode.SHADOW),
    ]


def test_the_rollback_page_shows_the_last_one_and_the_latch(life):
    life.promote(Mode.WARN)
    roll_back(life.context, ENVIRONMENT, actor=OPERATOR, reason=WHY)
    page = rollback_page(life.context, ENVIRONMENT)
    assert page.last is not None
    assert (page.last.is_automatic, page.last.reason, page.latched) == (False, WHY, None)
    (prompt, *_) = life.prompts(life.today - timedelta(days=1))
    life.host.send(logs([prompt.transition(1, "tracked", terminal__status="cancelled")]))
    page = rollback_page(life.context, ENVIRONMENT)
    assert page.last is not None
    assert page.last.is_automatic
    assert page.latched is not None
    (violation,) = page.latched.violations
    assert violation.invariant is Invariant.CANCELLED_COUNTED


def test_violations_of_an_untrusted_host_are_no_violations_of_the_rollout(life):
    (prompt, *_) = life.prompts(life.today - timedelta(days=1))
    stranger = Host(life.context, is_trusted=False)
    broken = prompt.transition(1, "tracked", terminal__status="cancelled")
    stranger.send(logs([broken]))
    life.host.send(logs([replace(broken, attributes={**broken.attributes, ASSIGNMENT_ID: ""})]))
    page = guard_page(life.context, ENVIRONMENT, GUARD)
    assert page.violations == ()
    health = page.card.telemetry
    assert (health.untrusted_violations, health.unvouched_violations) == (1, 1)
