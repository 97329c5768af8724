"""The exposure check: how much of the treated cohort ran at its mode."""

from dataclasses import replace

import orjson
import pytest

from guardwave.control_plane.core.state import Evaluation
from guardwave.control_plane.jobs.bundles import unpack_bundle
from guardwave.control_plane.jobs.replay import replay
from guardwave.control_plane.queries.gates import gate_page
from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.vocabulary import Cohort, Mode
from tests.support.hosts import Assigner, Prompt, issue_id
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT, GUARD


@pytest.fixture
def life(store):
    """A warn wave, of 24 owners 19 warned, before its first day."""
    found = Life.begin(store)
    found.live(3)
    found.promote(Mode.WARN)
    return found


def shadow_answers(life: Life, *, from_number: int = 0) -> dict[str, str]:
    """Return assignment ids in shadow of warned owners, as for an unknown version."""
    assigner = Assigner(life.context, ENVIRONMENT)
    assignments: list[Assignment] = [assigner.of(owner)[0] for owner in life.owners]
    warned = [assignment for assignment in assignments if assignment.cohort is Cohort.WARNED][
        from_number:
    ]
    lower = [replace(assignment, mode=Mode.SHADOW) for assignment in warned]
    return {
        issue_id(life.context, high): issue_id(life.context, low)
        for high, low in zip(warned, lower, strict=True)
    }


def answered_by(ids: dict[str, str]):
    def change(prompt: Prompt) -> Prompt:
        (own,) = prompt.ids
        if own not in ids:
            return prompt
        return replace(prompt, ids=(ids[own],), mode=Mode.SHADOW)

    return change


def check_of(done: Evaluation):
    result = orjson.loads(done.result or "{}")
    (found,) = [check for check in result["checks"] if check["check"] == "exposure"]
    return found


def test_a_wave_in_which_nobody_was_warned_says_so_and_has_no_data(life):
    life.live(8, change=answered_by(shadow_answers(life)))
    done = life.evaluate()
    found = check_of(done)
    assert found["verdict"] == "no_data"
    assert found["sentence"] == "Nobody was treated: of 266 prompts of warned none ran in warn."
    assert found["numbers"] == {
        "needed_share": 0.5,
        "warned_at_mode": 0,
        "warned_prompts": 19 * 2 * 7,
        "holdback_at_mode": 5 * 2 * 7,
        "holdback_prompts": 5 * 2 * 7,
    }


@pytest.mark.parametrize(
    ("treated", "verdict"),
    [
        pytest.param(9, "unproven", id="9 of 19 owners"),
        pytest.param(10, "within", id="10 of 19 owners"),
    ],
)
def test_more_than_half_of_the_prompts_have_to_run_at_the_mode(life, treated, verdict):
    life.live(8, change=answered_by(shadow_answers(life, from_number=treated)))
    found = check_of(life.evaluate())
    assert (found["verdict"], found["numbers"]["warned_at_mode"]) == (verdict, treated * 14)


def test_the_page_shows_the_note_and_the_bundle_replays_it(life):
    life.live(8)
    done = life.evaluate()
    page = gate_page(life.context, ENVIRONMENT, GUARD, done.id)
    (found,) = [check for check in page.evaluation.checks if check.check == "exposure"]
    assert found.sentence == (
        "266 of 266 prompts of warned (100 %) ran in warn and 70 of 70 prompts of holdback (100 %) "
        "ran in shadow."
    )
    packed = b"".join(life.context.gates.bundle_parts(ENVIRONMENT, GUARD, done.id))
    assert replay(unpack_bundle(packed)).difference is None


def test_a_gate_of_shadow_asks_for_none(store):
    life = Life.begin(store)
    life.live(7)
    result = orjson.loads(life.evaluate().result or "{}")
    assert "exposure" not in {check["check"] for check in result["checks"]}
    assert "exposure" not in {note["topic"] for note in result["notes"]}
