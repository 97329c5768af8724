"""What wordings decide is worked out once, and what is kept of it is bounded for a whole worker."""

import itertools
from concurrent.futures import ThreadPoolExecutor

from control_plane.ingest.booked import Backing
from control_plane.ingest.records import Origin, PromptStart
from control_plane.ingest.wording_effects import EffectBound, WordingEffects
from control_plane.ingest.wordings import Wording
from control_plane.stores.cells import Cell
from reducer.rollout.assignment import Assignment
from reducer.vocabulary import Cohort, Mode, Route

GUARDS = ("repeated_tool_failure", "identical_call", "oscillation", "same_content")
START = PromptStart(
    origin=Origin("", "", "", "", 1, ()),
    time_ns=0,
    prompt_id="",
    assignment_ids=(),
    route=Route.INTERACTIVE_FOREGROUND,
)
MOST = 65_536


def backings(version: str) -> list[Backing]:
    """What vouches for an owner under four guards."""
    return [
        Backing(
            Assignment(guard, "A" * 16, 1, Cohort.CONTROL, Mode.SHADOW, 1),
            Cell(guard, version, 1, Cohort.CONTROL, Mode.SHADOW),
        )
        for guard in GUARDS
    ]


def kept(tables: list[WordingEffects]) -> int:
    return sum(1 + len(effect.events) for table in tables for effect in table.values())


def test_what_is_kept_of_runs_counts_to_the_same_bound():
    bound = EffectBound(60)
    table = WordingEffects("internal", backings("1.0"), bound)
    wordings = [Wording(START, 0) for _ in range(4)]
    runs = list(itertools.permutations(wordings, 2))
    for _ in range(2):
        for run in runs:
            effect = table.of_run(run)
            own = [like.packed() for each in run for like, _ in table[each].events]
            assert [like.packed() for like in effect.likes] == own
            assert kept([table]) + sum(3 + len(GUARDS) * 2 for _ in table.runs) <= 60
    assert table.runs
    table.of_run(tuple(wordings * 5))
    assert tuple(wordings * 5) not in table.runs


def test_whatever_versions_a_sender_names_the_effects_of_a_worker_are_bounded():
    wordings = [Wording(START, 0) for _ in range(1000)]
    tables = [WordingEffects("internal", backings(f"1.{at}")) for at in range(14)]
    for table in tables:
        for wording in wordings:
            assert len(table[wording].events) == len(GUARDS)
    assert kept(tables) <= MOST < 14 * 1000 * (1 + len(GUARDS))
    assert wordings[-1] in tables[-1]


def test_effects_that_were_forgotten_are_worked_out_again_alike():
    bound, wording = EffectBound(20), Wording(START, 0)
    first, second = (WordingEffects("internal", backings(each), bound) for each in ("1.0", "2.0"))
    before = first[wording]
    for _ in range(20):
        assert second[Wording(START, 0)].place == before.place
    assert wording not in first
    after = first[wording]
    assert [half for _, half in after.events] == [half for _, half in before.events]
    assert [like.packed() for like, _ in after.events] == [
        like.packed() for like, _ in before.events
    ]


def test_threads_that_forget_under_each_others_hands_keep_to_the_bound():
    bound = EffectBound(50)
    tables = [WordingEffects("internal", backings(f"1.{at}"), bound) for at in range(3)]
    wordings = [Wording(START, 0) for _ in range(30)]

    def decide(at: int) -> int:
        return sum(len(tables[(at + step) % 3][each].events) for step, each in enumerate(wordings))

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(decide, range(24)))
    assert found == [len(wordings) * len(GUARDS)] * 24
    assert kept(tables) <= 50
