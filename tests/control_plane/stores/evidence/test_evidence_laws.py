import itertools
from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardwave.control_plane.stores.evidence.delta.request import EvidenceBatch
from guardwave.control_plane.stores.evidence.store import EvidenceStore
from tests.support.stores.prompt_histories import (
    DAYS,
    OWNERS,
    Sums,
    deliveries,
    mixed,
    order,
    sums_of,
)

LATER = datetime.fromtimestamp(1_800_000_000, UTC) + timedelta(days=2)
# Each example has an environment of its own, so the store need not be emptied between them.
_numbers = itertools.count()
each_alone = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def new_environment() -> str:
    return f"law-{next(_numbers)}"


def stored_sums(evidence: EvidenceStore, environment: str) -> Sums:
    for day in DAYS:
        evidence.seal(environment, day, at=LATER, longest_outage_seconds=0.0)
    rows = [
        row
        for owner in OWNERS
        for _, row in evidence.owner_rows(environment, owner.pseudonym, owner.owner_bucket, DAYS)
    ]
    by_day = {}
    for sealed in evidence.sealed_days(environment, DAYS):
        counts = Counter({f"h{hour}": many for hour, many in enumerate(sealed.hourly_prompts)})
        counts.update(
            ended=sealed.ended,
            covered=sealed.covered,
            records=sealed.records,
            conforming=sealed.conforming,
        )
        by_day[sealed.day] = counts
    return Sums(tuple(sorted(rows, key=order)), by_day)


def without_zeros(sums: Sums) -> Sums:
    by_day = {day: +counts for day, counts in sums.by_day.items() if +counts}
    return Sums(sums.owner_days, by_day)


@each_alone
@given(delivery=deliveries(), data=st.data())
def test_the_sums_depend_on_the_events_alone_however_they_arrive(evidence, delivery, data):
    environment = new_environment()
    for batch in delivery.batches:
        evidence.write(environment, EvidenceBatch(data.draw(mixed(batch))))
        if data.draw(st.booleans()):
            evidence.close_lost_prompts(environment, LATER)
    evidence.close_lost_prompts(environment, LATER)

    stored, expected = stored_sums(evidence, environment), sums_of(delivery.history)
    assert without_zeros(stored) == without_zeros(expected)


@each_alone
@given(delivery=deliveries(), data=st.data())
def test_repeated_events_count_as_duplicates_and_change_no_byte(evidence, delivery, data):
    environment = new_environment()
    sent = sum(map(len, delivery.batches))
    answers = [
        evidence.write(environment, EvidenceBatch(data.draw(mixed(batch))))
        for batch in delivery.batches
    ]
    assert sum(answer.new for answer in answers) == len(delivery.history)
    assert sum(answer.new + answer.duplicate for answer in answers) == sent
    before = stored_sums(evidence, environment)

    again = evidence.write(environment, EvidenceBatch(data.draw(mixed(delivery.history))))

    assert (again.new, again.duplicate) == (0, len(delivery.history))
    assert stored_sums(evidence, environment) == before
    revisions = [sealed.revision for sealed in evidence.sealed_days(environment, DAYS)]
    assert revisions == [1] * len(DAYS)
