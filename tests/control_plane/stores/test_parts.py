"""Prompts that a host tells of in parts: the sums depend on the parts alone."""

import itertools
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings

from control_plane.stores.evidence import EvidenceStore
from control_plane.stores.evidence_events import EvidenceBatch
from control_plane.stores.evidence_parts import Answered, Closed, Finished
from reducer.vocabulary import Outcome
from tests.control_plane.stores.part_histories import OWNER, sums_of, told
from tests.control_plane.stores.prompt_histories import DAYS

LATER = datetime.fromtimestamp(1_800_000_000, UTC) + timedelta(days=2)
NAMES = ("started", "ended", "covered", "tokens", "turns", "disrupted", "would_stopped")
_numbers = itertools.count()


@pytest.fixture
def evidence(any_store):
    return EvidenceStore(any_store)


def stored_sums(evidence: EvidenceStore, environment: str) -> Counter[str]:
    sums: Counter[str] = Counter()
    for _, row in evidence.owner_rows(environment, OWNER.pseudonym, OWNER.owner_bucket, DAYS):
        for name in (*NAMES, "calls_after_would_stop", *Outcome):
            sums[name] += getattr(row, name)
        sums.update({f"bucket {bucket}": prompts for bucket, prompts in row.durations})
    return +sums


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(telling=told())
def test_the_sums_depend_on_the_parts_alone_however_they_arrive(evidence, telling):
    environment = f"parts-{next(_numbers)}"
    for batch in telling.batches:
        evidence.write(environment, EvidenceBatch(batch))
    evidence.lose_overdue(environment, LATER)
    assert stored_sums(evidence, environment) == sums_of(telling.events)


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        pytest.param(lambda: Answered(-1, is_turn=True), "tokens=-1", id="negative tokens"),
        pytest.param(lambda: Finished(1, 24, 1), "hour=24", id="an hour that is none"),
        pytest.param(lambda: Finished(1, 2, -1), "turns=-1", id="negative turns"),
        pytest.param(lambda: Closed(1, 25, Outcome.FAILED, 1), "hour=25", id="no hour of a span"),
    ],
)
def test_a_part_that_the_store_cannot_add_is_refused(made, fault):
    with pytest.raises(ValueError, match=fault):
        made()
