"""Gate page beside its verdicts: notes, interim looks, tested margins, two periods."""

from dataclasses import replace
from datetime import date

from guardwave.control_plane.queries.evaluation_model import JsonValue, evaluation_view
from guardwave.control_plane.queries.page_models import LookLine
from guardwave.reducer.vocabulary import Metric
from tests.dashboards import samples
from tests.dashboards.conftest import OPERATOR, Render
from tests.dashboards.reading import visible_text
from tests.dashboards.test_gate_page import gate_of
from tests.dashboards.test_guard_page import guard_of

LATENCY = samples.metric(
    "latency_p95",
    kind="ratio",
    treated=39_800.0,
    reference=38_120.0,
    estimate=1.044,
    margin=1.10,
    interval=None,
    bound=1.088,
    tested_margin=1.0964,
    cut={"treated_ms": 41_000.0, "reference_ms": 37_400.0, "treated": 0.05, "reference": 0.05},
    cuped={"variance_ratio": 0.71, "owners_with_baseline": 1180, "owners_new": 60, "days": 7},
    verdict="within",
    sentence="Within: latency p95 39.8 s enforced v 38.1 s control.",
)
QUIET = LookLine(3, 1, date(2026, 11, 21), False, False, ("No alarm about turns: no harm.",))
ALARM = LookLine(
    3, 2, date(2026, 11, 22), True, True, ("Alarm about completion: -12.0 pp, beyond -1.0 pp.",)
)


def gate_with(render: Render, **changes: JsonValue) -> str:
    evaluation = evaluation_view(samples.wire(**changes))
    return gate_of(render, replace(samples.GATE_PAGE, evaluation=evaluation))


def test_latency_is_shown_in_seconds_with_its_tested_margin(render: Render) -> None:
    text = visible_text(gate_with(render, metrics=[LATENCY]))

    assert "39.8 s" in text
    assert "38.1 s" in text
    assert "x1.100 tested x1.096" in text
    assert "This is the tested margin." in text


def test_a_metric_shows_its_remaining_variance(render: Render) -> None:
    assert "71 % of variance left" in visible_text(gate_with(render, metrics=[LATENCY]))
    assert "CUPED" not in visible_text(gate_of(render))


def test_a_note_is_shown_as_information_and_a_warning_asks_to_look(render: Render) -> None:
    note: dict[str, JsonValue] = {
        "topic": "power",
        "is_warning": False,
        "sentence": "Completion passes 41 % of harmless waves.",
        "numbers": {},
    }
    moved: dict[str, JsonValue] = {
        **note,
        "topic": "control_moved",
        "is_warning": True,
        "sentence": "Control moved by 1.2 pp.",
    }
    text = visible_text(gate_with(render, notes=[note, moved]))

    assert "information Power: Completion passes 41 % of harmless waves." in text
    assert "needs attention The reference cohort: Control moved by 1.2 pp." in text


LOOPS: dict[str, JsonValue] = {
    "topic": "other_protections",
    "is_warning": False,
    "sentence": (
        "Other protections ended 4.10 turns per 1,000 prompts in enforced, 4.00 in control."
    ),
    "numbers": {"treated_per_1000": 4.1, "reference_per_1000": 4.0},
}


def test_what_other_protections_did_is_information_beside_the_invariants(
    render: Render,
) -> None:
    text = visible_text(gate_with(render, notes=[LOOPS]))

    sentences = (
        "No invariant was violated, in 84,198 covered prompts. For information: Other protections "
        "ended 4.10 turns per 1,000 prompts in enforced, 4.00 in control."
    )
    assert sentences in text
    assert "Worth knowing" not in text


def test_without_the_invariants_it_stands_with_the_other_notes(render: Render) -> None:
    text = visible_text(gate_with(render, notes=[LOOPS], checks=[]))

    assert (
        "information Other protections: Other protections ended 4.10 turns per 1,000 prompts"
        in text
    )


def test_the_harm_that_the_draw_can_miss_is_one_sentence(render: Render) -> None:
    unseen: dict[str, JsonValue] = {
        "topic": "unseen_owners",
        "is_warning": False,
        "sentence": "The wave is too small to see harm in few owners.",
        "numbers": {"chance_unseen": 0.35},
    }
    text = visible_text(gate_with(render, notes=[unseen]))

    sentence = "The wave is too small to see harm in few owners."
    assert f"information Harm in few owners: {sentence}" in text


def test_an_evaluation_from_before_notes_shows_none(render: Render) -> None:
    assert "Worth knowing" not in gate_of(render)


def test_a_comparison_of_two_periods_is_labelled(render: Render) -> None:
    text = visible_text(gate_with(render, comparison="before_after"))

    assert "This compares before and after." in text
    assert "This compares before and after." not in visible_text(gate_of(render))


def test_a_promotion_on_two_periods_asks_for_the_words(render: Render) -> None:
    offer = replace(samples.OFFER, words="before/after")
    page = gate_of(render, replace(samples.GATE_PAGE, offer=offer), identity=OPERATOR)

    assert "include the words “before/after”." in visible_text(page)


def test_looks_for_harm_report_their_result(render: Render) -> None:
    text = visible_text(gate_of(render, replace(samples.GATE_PAGE, looks=(ALARM, QUIET))))

    assert "alarm raised, enforce lowered to warn. Alarm about completion" in text
    assert "1 earlier look of wave 3" in text.replace("\N{NO-BREAK SPACE}", " ")
    assert "no alarm. No alarm about turns: no harm." in text


def test_a_look_names_the_metrics_that_it_could_not_see(render: Render) -> None:
    blind = (Metric.TOKENS, Metric.LATENCY_P95)
    for line, expected in (
        (QUIET, "no alarm, no data about tokens, latency p95. No alarm about turns"),
        (ALARM, "enforce lowered to warn, no data about tokens, latency p95. Alarm about"),
    ):
        page = replace(samples.GATE_PAGE, looks=(replace(line, untold=blind),))
        assert expected in visible_text(gate_of(render, page))


def test_the_guard_page_shows_the_looks_of_the_newest_wave_that_has_any(render: Render) -> None:
    text = visible_text(guard_of(render, page=replace(samples.GUARD_PAGE, looks=(ALARM,))))

    assert "Alarm about completion: -12.0 pp, beyond -1.0 pp." in text
    assert "Interim looks for harm" not in visible_text(guard_of(render))


def test_the_gate_page_names_the_command_that_makes_the_verdict_again(render: Render) -> None:
    assert f"guardwave replay internal/{samples.GUARD}/12" in visible_text(gate_of(render))


def test_a_day_that_a_check_mentions_is_not_listed_again(render: Render) -> None:
    sentence = "7 of 7 complete days; 1 day does not count (2026-11-27: an outage)."
    dwell: dict[str, JsonValue] = {
        "check": "dwell",
        "verdict": "within",
        "sentence": sentence,
        "numbers": {},
    }

    text = visible_text(gate_with(render, checks=[dwell]))

    assert "1 day does not count (27 November 2026: an outage)." in text
    assert "Days that did not count" not in text
    assert "Days that did not count when this was evaluated" in visible_text(gate_of(render))
