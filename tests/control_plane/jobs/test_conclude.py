"""The verdict on a real wave: durations, the draw, and who can be compared."""

from dataclasses import replace

import orjson
import pytest

from guardwave.analysis.frames.baseline import COMPARABLE
from guardwave.analysis.report import Check
from guardwave.control_plane.jobs.bundles import SCHEMA, Bundle, unpack_bundle
from guardwave.control_plane.jobs.cohort_assignment import keep_assigned_cohorts
from guardwave.control_plane.jobs.conclude import conclude, evidence_of
from guardwave.control_plane.jobs.gather import gather
from guardwave.control_plane.jobs.owner_day_table import OwnerDayTable
from guardwave.reducer.rollout.state import TREATED, gate_for
from guardwave.reducer.vocabulary import Cohort, Gate, Mode, Verdict
from tests.support.hosts import pseudonym_in
from tests.support.lives import Life
from tests.support.worlds import GUARD, VERSION

DURATION_MS = 30_000
NEXT = "2.0.0"


def evidence_in(life: Life):
    gate = gate_for(life.rollout.phase)
    assert gate is not None
    return evidence_of(gather(life.context, life.rollout, life.wave, gate=gate).gathered)


@pytest.fixture
def week(store):
    """A life in shadow with seven complete days."""
    life = Life.begin(store)
    life.live(7)
    return life


def result_of(life: Life):
    done = life.evaluate()
    assert done.result is not None, done.sentence
    return orjson.loads(done.result)


def test_durations_are_those_of_the_owners_prompts(week):
    durations = evidence_in(week).durations
    assert durations is not None
    named = sorted(pseudonym_in(week.context, owner) for owner in week.owners)
    assert durations.owners == tuple(named)
    assert (durations.scale, set(durations.totals)) == (7, {14})
    bucket = int(durations.buckets[0])
    low, high = durations.upper_edge(bucket - 1), durations.upper_edge(bucket)
    assert low < DURATION_MS <= high


def test_durations_that_no_host_reports_are_not_reported(week):
    gathered, rows = gather(week.context, week.rollout, week.wave, gate=Gate.SHADOW)
    silent = OwnerDayTable.of([replace(row, durations=()) for row in rows])
    assert evidence_of(replace(gathered, owner_days=silent)).durations is None


def purity_with_both_pinned(life: Life, *, moved: Cohort | None = None):
    """Return version purity of the life's gate as if two were pinned; `moved` ran the new one."""
    gate = gate_for(life.rollout.phase)
    assert gate is not None
    gathered, rows = gather(life.context, life.rollout, life.wave, gate=gate)
    wave = replace(gathered.wave, version_pin=(VERSION, NEXT))
    moved_rows = [replace(row, version=NEXT) if row.cohort is moved else row for row in rows]
    checks = conclude(
        replace(gathered, wave=wave, owner_days=OwnerDayTable.of(moved_rows))
    ).evaluation.checks
    (purity,) = [check for check in checks if check.check is Check.VERSION_PURITY]
    return purity


@pytest.mark.parametrize("phase", [Mode.SHADOW, Mode.WARN])
def test_a_pinned_version_that_nobody_ran_is_not_proven_in_any_phase(week, phase):
    if phase is Mode.WARN:
        week.promote(phase)
        week.live(8)
    purity = purity_with_both_pinned(week)
    assert purity.verdict is Verdict.UNPROVEN
    assert purity.sentence.startswith(
        f"Version {NEXT} is pinned, but {TREATED[phase]} started no prompt"
    )


@pytest.mark.parametrize("cohort", [Cohort.WARNED, Cohort.HOLDBACK])
def test_a_version_that_one_cohort_alone_ran_is_not_valid(week, cohort):
    week.promote(Mode.WARN)
    week.live(8)
    purity = purity_with_both_pinned(week, moved=cohort)
    assert purity.verdict is Verdict.INVALID
    assert "cannot be separated from what the version does" in purity.sentence


def warned_week_with_a_switch(life: Life):
    """Return what a warn gate gathers, with one owner's prompt in the other cohort too."""
    life.promote(Mode.WARN)
    life.live(8)
    gathered, rows = gather(life.context, life.rollout, life.wave, gate=Gate.WARN)
    (first, *_) = [row for row in rows if row.cohort is Cohort.WARNED]
    stray = replace(first, cohort=Cohort.HOLDBACK, started=1, completed=0, disrupted=0, cancelled=0)
    return replace(gathered, owner_days=OwnerDayTable.of([*rows, stray])), first.owner


def test_an_owner_in_two_cohorts_makes_a_wave_not_valid_and_fails_nothing(week):
    gathered, owner = warned_week_with_a_switch(week)
    evaluation, result, digest = conclude(gathered)
    assert evaluation.verdict is Verdict.INVALID
    assert "1 prompts were in two modes or cohorts" in evaluation.sentence
    bundle = Bundle(SCHEMA, 1, digest, result, gathered)
    assert conclude(unpack_bundle(bundle.packed()).gathered).digest == digest
    owners = evidence_of(gathered).owners
    assert owners.loc[owners["owner"] == owner, "cohort"].tolist() == ["warned"]


def test_an_owner_in_the_wrong_cohort_alone_is_left_there_for_the_draw_check(week):
    gathered, owner = warned_week_with_a_switch(week)
    rows = gathered.owner_days.frame()
    strays = rows[(rows["owner"] == owner) & (rows["cohort"] == "holdback")]
    kept = keep_assigned_cohorts(strays, gathered.wave, {owner})
    assert (len(kept.rows), kept.switched) == (1, 0)


def test_the_days_before_an_enforce_wave_compare_the_warned_alone(week):
    week.promote(Mode.WARN)
    week.live(8)
    roster = week.context.environments.roster(week.environment, GUARD, week.wave)
    assert roster is not None
    held = set(roster.pseudonyms[roster.treated :])
    week.promote(Mode.ENFORCE)
    week.live(1)
    baseline = evidence_in(week).baseline
    assert baseline is not None
    assert (len(baseline.days), baseline.is_long_enough) == (7, True)
    owners = baseline.owners
    assert set(owners.loc[~owners[COMPARABLE], "owner"]) == held
    assert len(owners) == 24


def test_the_days_before_a_warn_wave_are_shadow_for_everybody(week):
    week.promote(Mode.WARN)
    week.live(1)
    baseline = evidence_in(week).baseline
    assert baseline is not None
    assert baseline.owners[COMPARABLE].all()
    assert (baseline.owners["started"] == 14).all()


def test_the_draw_of_the_wave_is_replayed_by_its_gate(week):
    week.promote(Mode.WARN)
    week.live(8)
    result = result_of(week)
    (balance,) = [check for check in result["checks"] if check["check"] == "balance"]
    assert balance["verdict"] == Verdict.WITHIN
    assert "All 24 owners seen are in the cohort that the draw gives them." in balance["sentence"]
    assert result["comparison"] == "concurrent"


def test_without_a_holdback_the_wave_is_compared_with_the_week_before(week):
    policies = week.context.policies
    base = replace(policies.base, holdback_bps=0)
    week.context = replace(week.context, policies=replace(policies, base=base))
    week.promote(Mode.WARN)
    week.live(8)
    result = result_of(week)
    assert result["comparison"] == "before_after"
    assert all(row["estimate"] is not None for row in result["metrics"])


def test_actions_of_the_guard_are_counted_by_owner(week):
    evidence = evidence_in(week)
    assert evidence.guard_totals is not None
    assert (evidence.guard_totals["off_pin"] == 0).all()
    assert evidence.guard_totals_before is None
    assert set(evidence.owners["cohort"]) == {Cohort.EVERYONE.value}
