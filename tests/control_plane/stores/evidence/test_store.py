from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
import redis

from guardwave.control_plane.stores.evidence.delta.dedupe_keys import MOST, DedupeKey
from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    DisruptionDelta,
    EndDelta,
    PromptDelta,
    PromptKey,
    StartDelta,
    TransitionDelta,
)
from guardwave.control_plane.stores.evidence.delta.request import (
    EvidenceBatch,
    PromptEvent,
    VolumeEvent,
)
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.control_plane.stores.evidence.store import EvidenceStore, WriteResult
from guardwave.control_plane.stores.keys import EvidenceKeys
from guardwave.reducer.vocabulary import Cohort, DisruptionKind, Mode, Outcome
from tests.support.stores.one_prompt import (
    FRIDAY,
    GUARD,
    HERE,
    MIDNIGHT,
    NOW,
    OTHER_GUARD,
    OWNER,
    SATURDAY,
)

START = StartDelta(hour=23)
DISCONNECTED = DisruptionDelta(DisruptionKind.DISCONNECT)
RETRIED = DisruptionDelta(DisruptionKind.RETRY)
END = EndDelta(Outcome.COMPLETED, 120, 3, 400, transitions=0, calls_after_would_stop=0, hour=23)
VOLUME = Stratum("identical_call", "1.0.0", mode=Mode.WARN)


def event(
    delta: PromptDelta,
    digest: int,
    *,
    day: date = FRIDAY,
    second: int = MIDNIGHT - 60,
    strata: tuple[Stratum, ...] = (GUARD,),
    prompt: PromptKey = OWNER,
) -> PromptEvent:
    return PromptEvent(DedupeKey(digest, second), prompt, day, strata, True, delta)


def write(evidence: EvidenceStore, *events) -> WriteResult:
    return evidence.write(HERE, EvidenceBatch(events))


def rows(evidence: EvidenceStore, guard: Stratum = GUARD):
    return evidence.owner_days(HERE, guard.guard, guard.wave, [FRIDAY, SATURDAY])


def seal(evidence: EvidenceStore, day: date) -> bool:
    return evidence.seal(HERE, day, at=NOW, longest_outage_seconds=61.0)


def test_a_body_sent_twice_counts_once(evidence):
    body = (event(START, 1), event(END, 2))
    assert write(evidence, *body) == WriteResult(new=2, duplicate=0)
    assert write(evidence, *body) == WriteResult(new=0, duplicate=2)
    (row,) = rows(evidence)
    assert (row.started, row.completed, row.tokens, row.turns) == (1, 1, 120, 3)
    assert row.durations == ((400, 1),)


def test_one_prompt_under_two_guards_counts_once_for_each(evidence):
    both = (GUARD, OTHER_GUARD)
    write(evidence, event(START, 1, strata=both), event(END, 2, strata=both))
    assert [row.started for row in rows(evidence, GUARD)] == [1]
    assert [row.started for row in rows(evidence, OTHER_GUARD)] == [1]
    seal(evidence, FRIDAY)
    (sealed,) = evidence.sealed_days(HERE, [FRIDAY])
    assert (sealed.hourly_prompts[23], sealed.ended, sealed.records) == (1, 1, 2)


def test_an_end_without_a_start_counts_as_started(evidence):
    write(evidence, event(END, 2))
    (row,) = rows(evidence)
    assert (row.started, row.ended, row.covered) == (1, 1, 0)


def test_a_prompt_over_midnight_counts_on_the_day_of_its_start(evidence):
    write(evidence, event(END, 2, day=SATURDAY, second=MIDNIGHT + 60))
    assert [row.day for row in rows(evidence)] == [SATURDAY]

    write(evidence, event(START, 1, day=FRIDAY))

    (row,) = rows(evidence)
    assert (row.day, row.started, row.completed, row.covered) == (FRIDAY, 1, 1, 1)
    seal(evidence, FRIDAY)
    seal(evidence, SATURDAY)
    friday, saturday = evidence.sealed_days(HERE, [FRIDAY, SATURDAY])
    assert (friday.ended, friday.covered, friday.hourly_prompts[23]) == (1, 1, 1)
    assert (saturday.ended, saturday.covered, sum(saturday.hourly_prompts)) == (0, 0, 0)


def test_a_disruption_may_come_before_the_start_and_the_end(evidence):
    write(evidence, event(RETRIED, 3))
    assert rows(evidence) == ()
    write(evidence, event(END, 2))
    write(evidence, event(RETRIED, 4), event(START, 1))
    (row,) = rows(evidence)
    assert (row.started, row.disrupted) == (1, 1)


def test_a_cancelled_prompt_is_in_no_other_outcome(evidence):
    write(evidence, event(START, 1), event(replace(END, outcome=Outcome.CANCELLED), 2))
    (row,) = rows(evidence)
    others = (row.completed, row.failed, row.guard_stopped, row.limit, row.lost)
    assert (row.started, row.cancelled, others) == (1, 1, (0, 0, 0, 0, 0))


def test_a_prompt_keeps_the_stratum_of_its_earliest_record(evidence):
    shadowed = replace(GUARD, mode=Mode.SHADOW)
    write(evidence, event(END, 2, strata=(shadowed,), second=MIDNIGHT))
    write(evidence, event(START, 1, strata=(GUARD,), second=MIDNIGHT - 60))
    ((stratum, row),) = evidence.owner_rows(HERE, OWNER.pseudonym, OWNER.owner_bucket, [FRIDAY])
    assert (stratum, row.started, row.completed, row.switched) == (GUARD, 1, 1, 1)


@pytest.mark.parametrize(
    ("changed", "switched"),
    [
        pytest.param({"mode": Mode.WARN}, 1, id="two modes"),
        pytest.param({"cohort": Cohort.CONTROL}, 1, id="two cohorts"),
        pytest.param({"version": "2.0.0"}, 0, id="two versions"),
        pytest.param({"wave": 3}, 0, id="two waves"),
    ],
)
@pytest.mark.parametrize("is_reversed", [False, True], ids=["in order", "in reverse"])
def test_a_switch_is_of_mode_or_cohort_in_any_order(evidence, changed, switched, is_reversed):
    other = replace(GUARD, **changed)
    events = [event(START, 1), event(END, 2, strata=(other,), second=MIDNIGHT)]
    for message in reversed(events) if is_reversed else events:
        write(evidence, message)
    ((stratum, row),) = evidence.owner_rows(HERE, OWNER.pseudonym, OWNER.owner_bucket, [FRIDAY])
    assert (stratum, row.started, row.switched) == (GUARD, 1, switched)


def test_a_switch_back_is_one_switch(evidence):
    moves = [TransitionDelta(at, False, False, False) for at in (1, 2, 3)]
    strata = (GUARD, replace(GUARD, mode=Mode.WARN), GUARD)
    for at, (move, stratum) in enumerate(zip(moves, strata, strict=True)):
        write(evidence, event(move, at, strata=(stratum,), second=MIDNIGHT - 60 + at))
    write(evidence, event(START, 9))
    assert [row.switched for row in rows(evidence)] == [1]


def test_a_switch_under_one_guard_is_none_of_another_guard_or_wave(evidence):
    shadowed = replace(GUARD, mode=Mode.SHADOW)
    write(evidence, event(START, 1, strata=(GUARD, OTHER_GUARD)), event(END, 2, strata=(shadowed,)))
    assert sum(row.switched for row in rows(evidence)) == 1
    assert [row.switched for row in rows(evidence, OTHER_GUARD)] == [0]
    assert rows(evidence, replace(GUARD, wave=3)) == ()


def test_a_switch_is_seen_before_the_prompt_has_a_day(evidence):
    shadowed = replace(GUARD, mode=Mode.SHADOW)
    moves = [TransitionDelta(at, False, False, False) for at in (1, 2)]
    write(evidence, event(moves[0], 5), event(moves[1], 6, strata=(shadowed,)))
    assert [(row.started, row.switched) for row in rows(evidence)] == [(0, 1)]
    write(evidence, event(START, 1))
    assert [(row.started, row.switched) for row in rows(evidence)] == [(1, 1)]


@pytest.mark.parametrize(
    ("sequences", "reported", "covered"),
    [
        pytest.param([], 0, 1, id="no transition, none reported"),
        pytest.param([1, 2, 3], 3, 1, id="gapless"),
        pytest.param([3, 1, 2], 3, 1, id="gapless, out of order"),
        pytest.param([1, 3], 3, 0, id="one is missing"),
        pytest.param([1, 2], 3, 0, id="the last is missing"),
        pytest.param([1, 2, 3], 2, 0, id="more than reported"),
        pytest.param([1, 1, 3], 3, 0, id="a repeated number hides a gap"),
        pytest.param([0, 3, 3], 3, 0, id="a repeated number and a zero hide two"),
        pytest.param([0, 1, 2], 3, 0, id="counted from 0"),
        pytest.param([0], 0, 0, id="one where none is reported"),
        pytest.param([5, 1, 3, 2, 4], 5, 1, id="runs that join"),
        pytest.param([1], None, 0, id="the host does not report how many"),
    ],
)
def test_coverage_needs_a_gapless_sequence_as_long_as_reported(
    evidence, sequences, reported, covered
):
    guards = [GUARD, OTHER_GUARD]
    moves = [
        event(TransitionDelta(at, False, False, False), 10 + nth, strata=(guards[nth % 2],))
        for nth, at in enumerate(sequences)
    ]
    write(evidence, event(START, 1), event(replace(END, transitions=reported), 2), *moves)
    assert [row.covered for row in rows(evidence)] == [covered]


def test_a_prompt_with_a_thousand_gaps_is_remembered_in_bounded_space(any_store, evidence):
    moves = [event(TransitionDelta(2 * at, False, False, False), at) for at in range(2000)]
    write(evidence, *moves)
    (key,) = any_store.keys("ps:*")
    assert any_store.strlen(key) < 10_000
    write(evidence, event(START, -1), event(replace(END, transitions=2000), -2))
    assert [row.covered for row in rows(evidence)] == [0]


@pytest.mark.parametrize(
    ("runs", "covered"), [pytest.param(512, 1, id="as many"), pytest.param(513, 0, id="one more")]
)
def test_a_prompt_is_covered_in_any_order_that_leaves_512_runs_at_a_time(evidence, runs, covered):
    last = 2 * runs
    numbers = [*range(1, last, 2), *range(2, last + 1, 2)]
    moves = [event(TransitionDelta(number, False, False, False), number) for number in numbers]
    write(evidence, *moves, event(START, -1), event(replace(END, transitions=last), -2))
    assert [row.covered for row in rows(evidence)] == [covered]


def test_a_prompt_without_an_end_is_lost_after_a_day_and_found_when_the_end_comes(evidence):
    write(evidence, event(START, 1))
    started = datetime.fromtimestamp(MIDNIGHT - 60, UTC)
    assert evidence.close_lost_prompts(HERE, started + timedelta(hours=23, minutes=59)) == 0
    assert evidence.close_lost_prompts(HERE, started + timedelta(hours=24)) == 1
    assert evidence.close_lost_prompts(HERE, started + timedelta(hours=25)) == 0
    (row,) = rows(evidence)
    assert (row.started, row.lost, row.ended) == (1, 1, 0)

    write(evidence, event(END, 2, second=MIDNIGHT + 90_000))

    (row,) = rows(evidence)
    assert (row.started, row.lost, row.completed, row.ended) == (1, 0, 1, 1)


def test_overdue_prompts_are_closed_a_few_in_a_call_and_some_calls_at_a_time(any_store, evidence):
    prompts = [OWNER._replace(suffix=f"prompt-{number}") for number in range(45)]
    write(evidence, *(event(START, at, prompt=prompt) for at, prompt in enumerate(prompts)))
    any_store.config_resetstat()
    assert [evidence.close_lost_prompts(HERE, NOW, at_once=2) for _ in range(3)] == [40, 5, 0]
    assert any_store.info("commandstats")["cmdstat_fcall"]["calls"] == 20 + 3 + 1
    (row,) = rows(evidence)
    assert (row.started, row.lost) == (45, 45)


def test_a_prompt_that_is_gone_is_due_no_more(any_store, evidence):
    write(evidence, event(START, 1))
    (key,) = any_store.keys("ps:*")
    any_store.delete(key)
    assert evidence.close_lost_prompts(HERE, NOW) == 0
    assert any_store.keys("due:*") == []


def test_a_prompts_memory_outlives_every_event_that_may_still_come(any_store, evidence):
    write(evidence, event(START, 1))
    (key,) = any_store.keys("ps:*")
    assert any_store.ttl(key) > 72 * 3600  # 24 h until the end, 48 h until it arrives
    write(evidence, event(END, 2))
    assert any_store.ttl(key) > 50 * 3600  # 48 h until it is sent again, by clocks an hour off


def test_late_evidence_raises_a_sealed_days_revision_once_per_call(evidence):
    write(evidence, event(START, 1))
    assert seal(evidence, FRIDAY)
    assert not seal(evidence, FRIDAY)
    revisions = [evidence.sealed_days(HERE, [FRIDAY])[0].revision]
    bodies = [(event(END, 2), event(RETRIED, 3)), (event(END, 2),), (event(DISCONNECTED, 4),)]
    for body in bodies:
        write(evidence, *body)
        revisions.append(evidence.sealed_days(HERE, [FRIDAY])[0].revision)
    assert revisions == [1, 2, 2, 3]


def test_a_day_knows_its_seal_and_its_outage(evidence):
    assert evidence.sealed_days(HERE, [FRIDAY]) == ()
    evidence.seal(HERE, FRIDAY, at=NOW, longest_outage_seconds=61.25)
    evidence.seal(HERE, SATURDAY, at=NOW, longest_outage_seconds=None)
    friday, saturday = evidence.sealed_days(HERE, [FRIDAY, SATURDAY])
    assert (friday.longest_outage_seconds, saturday.longest_outage_seconds) == (61.25, None)
    assert evidence.days(HERE) == (FRIDAY, SATURDAY)


def test_volume_is_counted_by_stratum_once_and_is_no_owners(evidence):
    points = [
        VolumeEvent(DedupeKey(at, MIDNIGHT), FRIDAY, VOLUME, "agent.turns", by=at) for at in (3, 4)
    ]
    write(evidence, *points, points[0])
    write(evidence, *points)
    assert evidence.counters(HERE, FRIDAY) == {(VOLUME, "agent.turns"): 7}
    assert rows(evidence) == ()


def test_a_counter_stops_at_the_largest_exact_number_instead_of_failing(evidence):
    points = [
        VolumeEvent(DedupeKey(at, MIDNIGHT), FRIDAY, VOLUME, "calls", by=MOST) for at in range(3)
    ]
    assert write(evidence, *points).new == 3
    assert evidence.counters(HERE, FRIDAY) == {(VOLUME, "calls"): MOST}


def test_sums_keep_large_numbers_exact(evidence):
    for number, tokens in enumerate((2**52, 2**51 + 1)):
        prompt = OWNER._replace(suffix=f"prompt-{number}")
        write(evidence, event(replace(END, tokens=tokens), number, prompt=prompt))
    assert [row.tokens for row in rows(evidence)] == [2**52 + 2**51 + 1]


def test_health_counts_accepted_and_rejected_items(evidence):
    batch = EvidenceBatch((event(START, 1),), health={"refused:late": 2}, last_record_second=70)
    evidence.write(HERE, batch)
    evidence.write(HERE, replace(batch, health={}, last_record_second=60))
    counts = {"accepted": 1, "duplicate": 1, "refused:late": 2, "last_record_s": 70}
    assert evidence.health(HERE) == counts


def test_what_an_event_counts_beside_itself_is_counted_when_it_is_new(evidence):
    start = replace(event(START, 1), health=("watched", "watched too"))
    volume = VolumeEvent(DedupeKey(2, MIDNIGHT), FRIDAY, GUARD, "calls", health=("watched",))
    for _ in range(2):
        write(evidence, start, volume, volume)
    found = evidence.health(HERE)
    assert (found["watched"], found["watched too"]) == (2, 1)


def test_a_call_that_fails_leaves_nothing_half_written(any_store, evidence):
    write(evidence, event(START, 1))
    keys = EvidenceKeys(HERE)
    damaged = keys.owner_days(2, FRIDAY, OWNER.owner_bucket)
    any_store.set(damaged, "not a hash")
    before = {key: any_store.dump(key) for key in any_store.keys("*")}

    new_stratum = replace(GUARD, version="2.0.0")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        write(
            evidence,
            event(END, 2),
            event(START, 3, prompt=OWNER._replace(suffix="prompt-2"), strata=(new_stratum,)),
        )

    assert {key: any_store.dump(key) for key in any_store.keys("*")} == before


def test_a_lost_function_library_is_loaded_again(any_store, evidence):
    any_store.function_flush("SYNC")
    assert write(evidence, event(START, 1)).new == 1


@pytest.mark.parametrize(
    ("make", "field"),
    [
        pytest.param(lambda: replace(END, tokens=-1), "tokens=-1", id="negative tokens"),
        pytest.param(lambda: replace(END, turns=2**53), "turns=9007199254740992", id="inexact"),
        pytest.param(lambda: replace(END, transitions=-2), "transitions=-2", id="transitions"),
        pytest.param(lambda: replace(END, calls_after_would_stop=-1), "calls_after", id="calls"),
        pytest.param(lambda: replace(END, hour=24), "hour=24", id="no such hour"),
        pytest.param(lambda: replace(END, outcome=Outcome.LOST), "outcome=lost", id="lost"),
        pytest.param(lambda: StartDelta(-1), "hour=-1", id="start before its day"),
        pytest.param(
            lambda: TransitionDelta(-1, False, False, False), "sequence=-1", id="sequence"
        ),
        pytest.param(
            lambda: VolumeEvent(DedupeKey(1, 1), FRIDAY, GUARD, "calls", by=-1),
            "by=-1",
            id="counter",
        ),
        pytest.param(lambda: event(START, 1, strata=()), "name each guard", id="no guard"),
        pytest.param(
            lambda: event(START, 1, strata=(GUARD, GUARD)), "name each guard", id="a guard twice"
        ),
        pytest.param(
            lambda: event(TransitionDelta(1, False, False, False), 1, strata=(GUARD, OTHER_GUARD)),
            "a transition of 2 guards",
            id="a transition of two guards",
        ),
    ],
)
def test_an_event_that_the_store_cannot_add_is_rejected_by_field(make, field):
    with pytest.raises(ValueError, match=field):
        make()


def test_one_owner_has_a_row_for_each_mode_and_version(evidence):
    newer = replace(GUARD, version="2.0.0")
    second = OWNER._replace(suffix="prompt-2")
    write(evidence, event(START, 1), event(START, 2, prompt=second, strata=(newer,)))
    found = evidence.owner_rows(HERE, OWNER.pseudonym, OWNER.owner_bucket, [FRIDAY, SATURDAY])
    assert {stratum for stratum, _ in found} == {GUARD, newer}
    assert [row.started for row in rows(evidence)] == [1, 1]
    assert dict(evidence.strata(HERE)) == {1: GUARD, 2: newer}


def test_environments_do_not_see_each_other(evidence):
    write(evidence, event(START, 1))
    assert evidence.days("public-cloud") == ()
    assert evidence.strata("public-cloud") == ()
    assert evidence.health("public-cloud") == {}
