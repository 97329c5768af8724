"""Overview: the state of every rollout, worst first."""

import re
from dataclasses import replace

import pytest

from guardwave.control_plane.queries.page_models import GuardCard, NextStep
from guardwave.dashboards.views.overview import announcement, group_by_environment, page_digests
from guardwave.reducer.vocabulary import Mode, Verdict
from tests.dashboards import samples
from tests.dashboards.conftest import Render
from tests.dashboards.reading import visible_text

ALL = samples.FRAME.environments


OLD_WAVE = replace(samples.SUMMARY, wave=2)
OFF = replace(
    samples.CARD,
    phase=Mode.OFF,
    wave=None,
    next_step=NextStep(Mode.SHADOW, None, is_allowed=True, why_not=None),
)


def overview_of(render: Render, *cards: GuardCard, seen: str | None = None) -> str:
    groups = group_by_environment(replace(samples.OVERVIEW, cards=cards), ALL)
    spoken = "" if seen is None else announcement(cards, seen)
    return render(
        "overview.html",
        frame=samples.FRAME,
        groups=groups,
        environment=None,
        announcement=spoken,
        seen=page_digests(cards),
    )


def test_the_overview_shows_mode_share_wave_telemetry_and_the_next_step(render: Render) -> None:
    public = replace(samples.PUBLIC, telemetry=samples.HEALTH)
    text = visible_text(overview_of(render, samples.CARD, public))

    for fact in (
        "5 % of owners, ceiling 5 %",
        "5 of 7 complete days",
        "flowing, last record 18 s ago · 84,322 accepted, 3 rejected",
        "Completion 93.1 % enforced v 93.9 % control",
        "promote to ◑ warn: not yet. Internal must have passed the warn step first.",
        "No gate has been evaluated yet.",
    ):
        assert fact in text


def test_an_environment_without_a_rollout_says_how_to_begin(render: Render) -> None:
    assert "No guard is under rollout here yet" in visible_text(overview_of(render, samples.CARD))


def test_an_evaluation_of_an_older_wave_is_not_taken_for_the_running_one(render: Render) -> None:
    older = replace(samples.CARD, gate=replace(samples.SUMMARY, wave=2))

    assert "wave 3, 29 November" in visible_text(overview_of(render, samples.CARD))
    text = visible_text(overview_of(render, older))
    assert "Enforce gate, last evaluation, wave 2 (not the running wave)" in text


@pytest.mark.parametrize(
    ("card", "loud", "quiet"),
    [
        pytest.param(samples.CARD, ["Review gate"], [], id="an evaluation of the running wave"),
        pytest.param(
            replace(samples.LATCHED, gate=OLD_WAVE),
            ["Acknowledge…"],
            ["Review last gate"],
            id="a latch",
        ),
        pytest.param(OFF, ["Switch on…"], ["Review last gate"], id="a guard that is off"),
        pytest.param(
            replace(samples.CARD, gate=OLD_WAVE), [], ["Review last gate"], id="an older wave"
        ),
        pytest.param(samples.PUBLIC, [], [], id="nothing evaluated"),
    ],
)
def test_the_button_that_stands_out_is_the_one_thing_to_do_next(
    render: Render, card: GuardCard, loud: list[str], quiet: list[str]
) -> None:
    (actions,) = re.findall(
        r'<p class="actions">(.*?)</p>', overview_of(render, card), flags=re.DOTALL
    )

    assert re.findall(r'class="button"[^>]*>([^<]+)<', actions) == loud
    assert re.findall(r'class="button quiet"[^>]*>([^<]+)<', actions) == quiet


@pytest.mark.parametrize(
    ("remedies", "expected"),
    [
        pytest.param(
            (),
            "send records. None has arrived yet, so no day can count. guardwave token create "
            "--role ingest --environment public-cloud --trusted creates a token",
            id="nothing was sent",
        ),
        pytest.param(
            ("15 items were quarantined (version_missing): set service.version",),
            "send records. None of the records received so far counts: see what to set.",
            id="nothing counts",
        ),
    ],
)
def test_without_records_the_next_step_is_to_send_some(
    render: Render, remedies: tuple[str, ...], expected: str
) -> None:
    health = replace(samples.PUBLIC.telemetry, remedies=remedies)
    card = replace(samples.PUBLIC, telemetry=health)

    assert expected in visible_text(overview_of(render, card))


@pytest.mark.parametrize(
    ("final_days", "gate", "occurrences"),
    [
        pytest.param(7, {"days_used": 7}, 1, id="all declared days are used"),
        pytest.param(14, {"days_used": 7}, 0, id="a later look was declared"),
        pytest.param(7, {"days_used": 5}, 0, id="days are still to come"),
        pytest.param(7, {"days_used": 7, "wave": 2}, 0, id="an older wave"),
        pytest.param(7, {"days_used": 7, "verdict": Verdict.WITHIN}, 0, id="within"),
        pytest.param(7, {"days_used": 7, "verdict": Verdict.BEYOND}, 0, id="beyond"),
    ],
)
def test_a_verdict_that_waiting_cannot_change_explains_how_to_change_it(
    render: Render, final_days: int, gate: dict[str, object], occurrences: int
) -> None:
    assert samples.CARD.wave is not None
    card = replace(
        samples.CARD,
        wave=replace(samples.CARD.wave, final_days=final_days),
        gate=replace(samples.SUMMARY, **gate),  # type: ignore[arg-type]  # a table of fields
    )
    text = visible_text(overview_of(render, card))

    waiting = "Waiting does not change the verdict: it rests on the 7 days that wave 3 declared."
    assert text.count(waiting) == occurrences
    assert text.count(f"guardwave plan internal {samples.GUARD} computes how many") == occurrences


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        pytest.param(
            Verdict.BEYOND,
            "s mode, or roll internal back; neither needs a gate.",
            id="beyond",
        ),
        pytest.param(Verdict.NO_DATA, "A new wave can, once the cause is fixed.", id="no data"),
        pytest.param(Verdict.INVALID, "A new wave can, once the cause is fixed.", id="invalid"),
    ],
)
def test_the_next_step_follows_the_verdict(render: Render, verdict: Verdict, expected: str) -> None:
    card = replace(samples.CARD, gate=replace(samples.SUMMARY, verdict=verdict, days_used=7))

    assert expected in visible_text(overview_of(render, card))


def test_a_verdict_that_blocks_a_step_is_shown_once(render: Render) -> None:
    step = NextStep(Mode.ENFORCE, 500, is_allowed=False, why_not=samples.UNPROVEN)
    text = visible_text(overview_of(render, replace(samples.CARD, phase=Mode.WARN, next_step=step)))

    assert "promote to ● enforce for 5 % of owners: not yet." in text
    assert text.lower().count("completion 93.1 %") == 1


def test_the_page_of_one_environment_names_it_once_to_the_eye(render: Render) -> None:
    groups = group_by_environment(samples.OVERVIEW, ("internal",))
    page = render(
        "overview.html",
        frame=samples.FRAME,
        groups=groups,
        environment="internal",
        announcement="",
        seen="",
    )

    assert '<h2 id="env-internal" class="unseen">' in page
    assert "climbs from shadow" not in page


def test_days_past_the_declared_look_are_shown_apart(render: Render) -> None:
    assert samples.CARD.wave is not None
    late = replace(samples.CARD, wave=replace(samples.CARD.wave, complete_days=9))

    assert "7 complete days, and 2 more" in visible_text(overview_of(render, late))


def test_a_latched_environment_comes_first_and_says_why(render: Render) -> None:
    latched = replace(samples.LATCHED, environment="public-cloud")
    page = overview_of(render, samples.CARD, latched)

    assert page.index('id="env-public-cloud"') < page.index('id="env-internal"')
    assert "public-cloud was rolled back to shadow by guardwave" in visible_text(page)
    assert samples.LATCH.reason in visible_text(page)
    assert "until an operator has reviewed violation 17" in visible_text(page)


def test_an_imported_environment_is_shown_as_held(render: Render) -> None:
    latch = replace(samples.LATCH, newest_violation=0, reason="The evidence was imported.")
    page = overview_of(render, replace(samples.LATCHED, latch=latch, open_violations=0))

    assert "has been held in shadow since" in visible_text(page)
    assert "until an operator has reviewed the import" in visible_text(page)


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        pytest.param({"latch": samples.LATCH}, {"open_violations": 3}, id="a latch"),
        pytest.param({"open_violations": 1}, {}, id="a violation"),
        pytest.param(
            {"gate": replace(samples.SUMMARY, verdict=Verdict.BEYOND)},
            {"gate": replace(samples.SUMMARY, verdict=Verdict.WITHIN)},
            id="a worse verdict",
        ),
    ],
)
def test_the_worst_rollout_comes_first(worse: dict[str, object], better: dict[str, object]) -> None:
    cards = (
        replace(samples.CARD, guard="a", **better),  # type: ignore[arg-type]  # a table of fields
        replace(samples.CARD, guard="b", **worse),  # type: ignore[arg-type]  # a table of fields
    )
    (group, _) = group_by_environment(replace(samples.OVERVIEW, cards=cards), ALL)

    assert [card.guard for card in group.cards] == ["b", "a"]


def test_only_a_change_of_mode_is_announced(render: Render) -> None:
    quiet = overview_of(render, samples.CARD)
    loud = overview_of(render, samples.LATCHED, seen="older")

    assert "hx-swap-oob" not in quiet
    assert f"{samples.GUARD} in internal: shadow, held: contract_violation in" in visible_text(loud)
    assert ".." not in announcement((samples.LATCHED,), "older")


def test_only_the_rollouts_that_changed_are_announced() -> None:
    before = page_digests((samples.CARD, samples.PUBLIC))

    assert announcement((samples.CARD, samples.PUBLIC), before) == ""
    spoken = announcement((samples.LATCHED, samples.PUBLIC), before)
    assert spoken.startswith(f"{samples.GUARD} in internal: shadow, held: ")
    assert "public-cloud" not in spoken


def test_the_overview_links_to_the_remedies_of_refused_items(render: Render) -> None:
    health = replace(samples.HEALTH, remedies=("3 items were refused (late): check the clock",))
    card = replace(samples.CARD, telemetry=health)
    where = f'href="/environments/internal/guards/{samples.GUARD}#remedies"'

    assert where in overview_of(render, card)
    assert where not in overview_of(render, samples.CARD)
