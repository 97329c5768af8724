"""Template effects: computed once, and bounded for a whole web worker."""

import itertools
from concurrent.futures import ThreadPoolExecutor

from guardwave.control_plane.ingest.evidence.delta import VerifiedAssignment
from guardwave.control_plane.ingest.evidence.template_effects import EffectBound, TemplateEffects
from guardwave.control_plane.ingest.model.record_templates import RecordTemplate
from guardwave.control_plane.ingest.model.records import Origin, PromptStart
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.vocabulary import Cohort, Mode, Route

GUARDS = ("repeated_tool_failure", "identical_call", "oscillation", "same_content")
START = PromptStart(
    origin=Origin("", "", "", "", 1, ()),
    time_ns=0,
    prompt_id="",
    assignment_ids=(),
    route=Route.INTERACTIVE_FOREGROUND,
)
MOST = 65_536


def assignments(version: str) -> list[VerifiedAssignment]:
    """Return the assignments of an owner under four guards."""
    return [
        VerifiedAssignment(
            Assignment(guard, "A" * 16, 1, Cohort.CONTROL, Mode.SHADOW, 1),
            Stratum(guard, version, 1, Cohort.CONTROL, Mode.SHADOW),
        )
        for guard in GUARDS
    ]


def kept(tables: list[TemplateEffects]) -> int:
    return sum(1 + len(effect.events) for table in tables for effect in table.values())


def test_effects_of_batches_count_to_the_same_bound():
    bound = EffectBound(60)
    table = TemplateEffects("internal", assignments("1.0"), bound)
    templates = [RecordTemplate(START, 0) for _ in range(4)]
    batches = list(itertools.permutations(templates, 2))
    for _ in range(2):
        for batch in batches:
            effect = table.of_batch(batch)
            single = [shared.packed() for template in batch for shared, _ in table[template].events]
            assert [shared.packed() for shared in effect.shared] == single
            assert kept([table]) + sum(3 + len(GUARDS) * 2 for _ in table.batches) <= 60
    assert table.batches
    table.of_batch(tuple(templates * 5))
    assert tuple(templates * 5) not in table.batches


def test_effects_of_a_worker_are_bounded_whatever_versions_a_sender_names():
    templates = [RecordTemplate(START, 0) for _ in range(1000)]
    tables = [TemplateEffects("internal", assignments(f"1.{at}")) for at in range(14)]
    for table in tables:
        for template in templates:
            assert len(table[template].events) == len(GUARDS)
    assert kept(tables) <= MOST < 14 * 1000 * (1 + len(GUARDS))
    assert templates[-1] in tables[-1]


def test_forgotten_effects_are_computed_again_with_the_same_result():
    bound, template = EffectBound(20), RecordTemplate(START, 0)
    first, second = (
        TemplateEffects("internal", assignments(version), bound) for version in ("1.0", "2.0")
    )
    before = first[template]
    for _ in range(20):
        assert second[RecordTemplate(START, 0)].place == before.place
    assert template not in first
    after = first[template]
    assert [digest for _, digest in after.events] == [digest for _, digest in before.events]
    assert [shared.packed() for shared, _ in after.events] == [
        shared.packed() for shared, _ in before.events
    ]


def test_threads_that_forget_each_others_effects_keep_to_the_bound():
    bound = EffectBound(50)
    tables = [TemplateEffects("internal", assignments(f"1.{at}"), bound) for at in range(3)]
    templates = [RecordTemplate(START, 0) for _ in range(30)]

    def decide(at: int) -> int:
        return sum(
            len(tables[(at + step) % 3][template].events) for step, template in enumerate(templates)
        )

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(decide, range(24)))
    assert found == [len(templates) * len(GUARDS)] * 24
    assert kept(tables) <= 50
