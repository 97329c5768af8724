"""Full latches: violations under one latch are bounded, and lost ones make evaluations stale."""

import orjson
import pytest

from guardwave.control_plane.commands.rollback import MAX_OPEN_VIOLATIONS, FoundViolation, latch
from guardwave.control_plane.core.errors import EvaluationStale
from guardwave.control_plane.core.state import Evaluation
from guardwave.control_plane.jobs.bundles import unpack_bundle
from guardwave.control_plane.jobs.replay import replay
from guardwave.reducer.vocabulary import Invariant, Mode
from tests.support.latches import is_latched, latch_of, release
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD, environment_of


@pytest.fixture
def life(store):
    found = Life.begin(store)
    found.live(3)
    return found


def storm(life: Life, numbers: range):
    found = [
        FoundViolation(f"record {at}", Invariant.CONTRACT_VIOLATION, GUARD, Mode.WARN, 1)
        for at in numbers
    ]
    return latch(life.context, ENVIRONMENT, found)


def recorded(life: Life) -> int:
    return len(life.context.incidents.violations(ENVIRONMENT))


def test_one_storm_beyond_the_bound_records_no_more_than_the_bound(life):
    assert storm(life, range(MAX_OPEN_VIOLATIONS + 200)) is not None
    assert recorded(life) == MAX_OPEN_VIOLATIONS


def test_a_full_latch_records_nothing_more_and_still_answers_its_rollback(life):
    first = storm(life, range(MAX_OPEN_VIOLATIONS - 1))
    assert storm(life, range(2000, 2005)) == first
    full = environment_of(life.context)
    assert (recorded(life), latch_of(life.context).newest_violation) == (
        MAX_OPEN_VIOLATIONS,
        MAX_OPEN_VIOLATIONS,
    )
    entries = len(life.context.environments.audit_chain(ENVIRONMENT))
    assert storm(life, range(3000, 3001)) == first
    assert environment_of(life.context) == full
    assert len(life.context.environments.audit_chain(ENVIRONMENT)) == entries
    assert recorded(life) == MAX_OPEN_VIOLATIONS


def test_a_full_latch_is_released_with_the_newest_violation_recorded(life):
    storm(life, range(MAX_OPEN_VIOLATIONS + 1))
    assert release(life.context).latch is None
    storm(life, range(5000, 5001))
    assert recorded(life) == MAX_OPEN_VIOLATIONS + 1
    assert is_latched(life.context)


def test_no_evaluation_made_before_a_full_latch_was_released_promotes(life):
    storm(life, range(MAX_OPEN_VIOLATIONS))
    evaluation = life.within()
    storm(life, range(5000, 5001))
    release(life.context)
    with pytest.raises(EvaluationStale, match="made at generation 2, the rollout is at 3"):
        life.ask_promotion(evaluation, Mode.WARN)
    assert life.ask_promotion(life.within(), Mode.WARN).id


def invariants_of(done: Evaluation) -> tuple[str, str]:
    """Return the verdict and the sentence of an evaluation's check of invariants."""
    checks = orjson.loads(done.result or "{}")["checks"]
    (found,) = (check for check in checks if check["check"] == "invariants")
    return found["verdict"], found["sentence"]


@pytest.mark.parametrize(
    ("violations", "verdict", "words"),
    [
        pytest.param(
            MAX_OPEN_VIOLATIONS - 1, "within", "No invariant was violated", id="room for one"
        ),
        pytest.param(MAX_OPEN_VIOLATIONS, "no_data", "No violation is known, but", id="full"),
    ],
)
def test_a_wave_without_known_violations_under_a_full_latch_is_no_data(
    life, violations, verdict, words
):
    storm(life, range(violations))
    life.live(8)
    done = life.evaluate()
    found, sentence = invariants_of(done)
    assert (found, done.verdict) == (verdict, verdict)
    assert sentence.startswith(words)
    packed = b"".join(life.context.gates.bundle_parts(ENVIRONMENT, GUARD, done.id))
    assert replay(unpack_bundle(packed)).difference is None


def test_violations_of_the_wave_that_filled_the_latch_are_beyond_and_no_lack_of_data(life):
    storm(life, range(1))
    life.live(2)
    storm(life, range(1, MAX_OPEN_VIOLATIONS))
    assert invariants_of(life.evaluate())[0] == "beyond"
