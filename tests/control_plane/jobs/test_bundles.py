"""Evidence bundles of real evaluations: complete, checked when read, enough to judge again."""

import gzip
from dataclasses import replace

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardwave.control_plane.jobs.bundles import Bundle, unpack_bundle
from guardwave.control_plane.jobs.gather import gather
from guardwave.control_plane.jobs.owner_day_table import OwnerDayTable
from guardwave.control_plane.jobs.replay import replay
from guardwave.control_plane.stores.evidence.owner_days import SUMS, OwnerDay
from guardwave.reducer.vocabulary import Cohort, Gate, Mode
from tests.support.lives import BEGAN, Life
from tests.support.worlds import ENVIRONMENT, GUARD


def stored_bundle(life: Life, number: int) -> bytes:
    return b"".join(life.context.gates.bundle_parts(ENVIRONMENT, GUARD, number))


def new_bundle(life: Life) -> Bundle:
    return unpack_bundle(stored_bundle(life, life.evaluate().id))


@pytest.fixture
def week(store):
    """A life in shadow with seven complete days."""
    life = Life.begin(store)
    life.live(7)
    return life


def test_the_bundle_alone_replays_to_the_same_bytes(week):
    done = week.evaluate()
    content = stored_bundle(week, done.id)
    week.store.flushall()

    found = replay(unpack_bundle(content))

    assert found.difference is None
    assert found.digest == found.recorded_digest == done.digest
    assert unpack_bundle(content).result == done.result


def test_a_wave_that_compares_is_replayed_with_its_baseline_and_its_roster(store):
    life = Life.begin(store)
    life.live(7)
    life.promote(Mode.WARN)
    life.live(8)
    life.promote(Mode.ENFORCE)
    life.live(8)

    bundle = new_bundle(life)

    gathered = bundle.gathered
    assert (gathered.gate, gathered.wave.number, len(gathered.roster)) == (Gate.ENFORCE, 3, 24)
    assert gathered.baseline is not None
    assert (gathered.baseline.wave, gathered.baseline.phase) == (2, Mode.WARN)
    assert len(gathered.baseline.days) == 7
    assert gathered.baseline.days[-1] < gathered.days[0].day
    assert replay(bundle).difference is None


def test_a_packed_bundle_comes_back_as_it_was_and_packs_to_the_same_bytes(week):
    bundle = new_bundle(week)
    assert unpack_bundle(bundle.packed()) == bundle
    assert unpack_bundle(gzip.decompress(bundle.packed())) == bundle
    assert unpack_bundle(bundle.packed()).packed() == bundle.packed()


def test_a_pending_evaluation_has_no_bundle(week):
    assert week.context.gates.bundle_size(ENVIRONMENT, GUARD, 1) == 0
    assert stored_bundle(week, 1) == b""


def test_a_result_that_is_not_stored_leaves_no_bundle(week):
    done = week.evaluate()
    content = stored_bundle(week, done.id)
    fence = week.context.jobs.lease(ENVIRONMENT, "worker of the test")
    other = replace(done, verdict="beyond")
    assert not week.context.gates.finish_evaluation(ENVIRONMENT, other, fence=fence, bundle=b"x")
    assert stored_bundle(week, done.id) == content


def with_edit(bundle: Bundle, **changes: object) -> Bundle:
    changed = replace(bundle.gathered, **changes)  # type: ignore[arg-type]  # by field name
    return replace(bundle, gathered=changed)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        pytest.param(
            lambda bundle: with_edit(bundle, policy_hash="0" * 64),
            "evidence_digest",
            id="policy hash",
        ),
        pytest.param(lambda bundle: with_edit(bundle, seed="1"), "seed: recorded 1", id="seed"),
        pytest.param(
            lambda bundle: with_edit(bundle, contract=None), "checks[contract]", id="contract"
        ),
        pytest.param(
            lambda bundle: with_edit(
                bundle,
                owner_days=replace(
                    bundle.gathered.owner_days,
                    counts={
                        **bundle.gathered.owner_days.counts,
                        "cancelled": bundle.gathered.owner_days.counts["started"],
                    },
                ),
            ),
            "the evidence cannot be judged: column 'completed', row",
            id="an impossible count",
        ),
        pytest.param(
            lambda bundle: replace(bundle, result=bundle.result.replace("within", "beyond")),
            "does not have the recorded digest",
            id="result",
        ),
    ],
)
def test_an_edited_bundle_names_the_edited_field(week, edit, words):
    bundle = new_bundle(week)
    difference = replay(edit(bundle)).difference
    assert difference is not None
    assert words in difference


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        pytest.param(lambda text: b"not json", "no evidence bundle: the bundle", id="not JSON"),
        pytest.param(lambda text: b"\x1f\x8b spoiled", "cannot be decompressed", id="not gzip"),
        pytest.param(lambda text: gzip.compress(text)[:-9], "cannot be decompressed", id="cut off"),
        pytest.param(lambda text: b"{}", "schema: Field required", id="another object"),
        pytest.param(
            lambda text: text.replace(b'"schema":1', b'"schema":2', 1),
            "has schema 2, this version reads 1",
            id="another schema",
        ),
        pytest.param(
            lambda text: text.replace(b'"gate":"shadow"', b'"gate":"open"'),
            "gathered.gate",
            id="an unknown word",
        ),
        pytest.param(
            lambda text: text.replace(b'"owner_at":[0,', b'"owner_at":[-1,', 1),
            "owner_at, row 0: -1",
            id="a place out of range",
        ),
        pytest.param(
            lambda text: text.replace(b'"owner_at":[0,', b'"owner_at":[', 1),
            "entries where",
            id="a column too short",
        ),
    ],
)
def test_a_spoiled_bundle_is_refused_by_name(week, spoil, words):
    text = gzip.decompress(new_bundle(week).packed())
    with pytest.raises(ValueError, match=r".") as refusal:
        unpack_bundle(spoil(text))
    assert words in str(refusal.value)


def test_a_baseline_under_another_pin_is_none(store):
    life = Life.begin(store)
    life.live(7)
    life.promote(Mode.WARN)
    gathered, _ = gather(life.context, life.rollout, life.wave, gate=Gate.WARN)
    assert gathered.baseline is not None
    assert gathered.baseline.days[0] > BEGAN.date()
    other = replace(life.wave, version_pin=("9.9.9",))
    gathered, _ = gather(life.context, life.rollout, other, gate=Gate.WARN)
    assert gathered.baseline is None


def test_fewer_than_seven_complete_days_are_no_baseline(store):
    life = Life.begin(store)
    life.live(6)
    life.promote(Mode.WARN)
    gathered, _ = gather(life.context, life.rollout, life.wave, gate=Gate.WARN)
    assert gathered.baseline is None


counts = st.integers(0, 2**53 - 1)
rows = st.lists(
    st.builds(
        OwnerDay,
        st.text("abc", min_size=1, max_size=2),
        st.dates(),
        st.sampled_from(list(Cohort)),
        st.sampled_from(["1.0", "2.0"]),
        **dict.fromkeys(SUMS, counts),
        durations=st.lists(st.tuples(st.integers(0, 900), st.integers(1, 9)), max_size=3).map(
            tuple
        ),
        loops=st.none() | counts,
    ),
    max_size=6,
)


@settings(deadline=None)
@given(rows)
def test_a_table_holds_each_owner_day_as_it_is(rows):
    table = OwnerDayTable.of(rows)
    has_loops = bool(rows) and all(row.loops is not None for row in rows)
    assert ("loops" in table.frame()) is has_loops
    named = ["owner", "day", "cohort", "version", *SUMS, *(["loops"] if has_loops else [])]
    assert table.frame()[named].astype(object).to_numpy().tolist() == [
        [getattr(row, name) for name in named] for row in rows
    ]
    durations = [(row.owner, *pair) for row in rows for pair in row.durations]
    lines = table.durations().astype(object).to_numpy().tolist()
    assert [tuple(line) for line in lines] == durations


def test_a_bundle_is_json_that_other_tools_read(week):
    read = orjson.loads(gzip.decompress(new_bundle(week).packed()))
    assert sorted(read) == ["digest", "evaluation", "gathered", "result", "schema"]
    table = read["gathered"]["owner_days"]
    assert len(table["owner_at"]) == len(table["counts"]["started"]) == 24 * 7
