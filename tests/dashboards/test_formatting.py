"""Formatting: numbers and times as the pages write them."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.analysis import sentences
from guardwave.control_plane.queries.evaluation_model import JsonValue, MetricView
from guardwave.dashboards import formatting as fmt
from guardwave.reducer.vocabulary import Metric, Verdict
from tests.dashboards import samples


def metric_of(name: str, **changes: JsonValue) -> MetricView:
    """Return a rate with a margin of 0.5 pp, or an amount with a margin of 1.1 times."""
    margin = 1.1 if Metric(name).is_ratio else 0.005
    fields = {"kind": "ratio" if Metric(name).is_ratio else "difference", "margin": margin}
    (metric,) = samples.evaluation(metrics=[samples.metric(name, **fields | changes)]).metrics
    return metric


DISRUPTION, TOKENS = metric_of("disruption"), metric_of("tokens")


def plain(text: str) -> str:
    """Return the text with the characters of a keyboard, to compare it."""
    return text.replace(fmt.GAP, " ").replace(fmt.MINUS, "-").replace(fmt.TIMES, "x")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param(fmt.percent(0.9312), "93.1 %", id="a percentage with one digit"),
        pytest.param(fmt.percent(0.0), "0.0 %", id="a percentage that is zero"),
        pytest.param(fmt.share(500), "5 %", id="a whole share"),
        pytest.param(fmt.share(50), "0.5 %", id="half a per cent"),
        pytest.param(fmt.count(1204), "1,204", id="a count with thousands"),
        pytest.param(fmt.quantity(1, "owner", "owners"), "1 owner", id="one owner"),
        pytest.param(fmt.quantity(0, "owner", "owners"), "0 owners", id="no owners"),
        pytest.param(fmt.level(0.93, Metric.COMPLETION), "93.00 %", id="a proportion"),
        pytest.param(fmt.level(6.02, Metric.TURNS), "6.02", id="an amount per prompt"),
        pytest.param(fmt.level(38_120.0, Metric.LATENCY_P95), "38.1 s", id="seconds"),
        pytest.param(fmt.level(840.0, Metric.LATENCY_P95), "0.840 s", id="less than a second"),
        pytest.param(fmt.average(14_310.2), "14,310", id="a large mean is whole"),
        pytest.param(fmt.average(6.0234), "6.02", id="a small mean has two decimals"),
        pytest.param(fmt.effect(-0.008, DISRUPTION), "-0.80 pp", id="a worse difference"),
        pytest.param(fmt.effect(0.0026, DISRUPTION), "+0.26 pp", id="a plus is written"),
        pytest.param(fmt.effect(-0.00001, DISRUPTION), "0.00 pp", id="no minus on zero"),
        pytest.param(fmt.effect(1.1, TOKENS), "x1.100", id="a ratio"),
        pytest.param(
            fmt.interval(metric_of("disruption", interval=samples.interval(-0.02041, 0.0044))),
            "-2.05 to +0.44 pp",
            id="an interval of differences",
        ),
        pytest.param(
            fmt.interval(metric_of("tokens", interval=samples.interval(0.941, 0.9975))),
            "x0.941 to x0.998",
            id="an interval of ratios",
        ),
        pytest.param(fmt.bound(metric_of("disruption", bound=0.00261)), "+0.27 pp", id="a bound"),
        pytest.param(
            fmt.bound(metric_of("completion", bound=-0.00261)), "-0.27 pp", id="a lower bound"
        ),
        pytest.param(fmt.margin(TOKENS), "x1.100", id="a margin"),
        pytest.param(fmt.margin(metric_of("tokens", margin=None)), "none", id="no margin"),
        pytest.param(fmt.largest_share(0.003), "0.3 %", id="a small largest owner"),
        pytest.param(fmt.largest_share(0.0003), "under 0.1 %", id="a tiny largest owner"),
        pytest.param(fmt.probability(0.391), "0.391", id="a p value"),
        pytest.param(fmt.probability(0.0004), "< 0.001", id="a tiny p value"),
        pytest.param(fmt.plain_number(84_198), "84,198", id="a whole number of a check"),
        pytest.param(fmt.average(6.2), "6.20", id="decimals are kept to compare"),
        pytest.param(fmt.average(31.42), "31.4", id="a mean over ten has one decimal"),
        pytest.param(fmt.plain_number(0.99), "0.99", id="a fraction without idle zeros"),
        pytest.param(fmt.plain_number(0.9985), "0.9985", id="a fraction of a check"),
        pytest.param(fmt.plain_number("contract"), "contract", id="words of a check"),
        pytest.param(fmt.age(0.4), "just now", id="an age under a second"),
        pytest.param(fmt.age(18.2), "18 s ago", id="seconds"),
        pytest.param(fmt.age(3_599), "59 min ago", id="minutes are cut, not rounded up"),
        pytest.param(fmt.age(86_400), "1 day ago", id="one day"),
        pytest.param(fmt.age(4 * 86_400), "4 days ago", id="several days"),
        pytest.param(fmt.day(date(2026, 3, 9)), "9 March 2026", id="a month has its name"),
        pytest.param(
            fmt.moment(datetime(2026, 11, 29, 12, 4, 31, tzinfo=UTC)),
            "29 November 2026, 12:04 UTC",
            id="a moment to the minute",
        ),
        pytest.param(
            fmt.clock(datetime(2026, 11, 29, 12, 4, 31, tzinfo=UTC)), "12:04:31 UTC", id="a clock"
        ),
        pytest.param(fmt.days_used(()), "no complete day yet", id="no days"),
        pytest.param(fmt.days_used((date(2026, 3, 9),)), "9 March 2026", id="one day alone"),
        pytest.param(
            fmt.days_used((date(2026, 3, 10), date(2026, 3, 9))),
            "9 to 10 March 2026",
            id="days in any order",
        ),
        pytest.param(
            fmt.days_used((date(2026, 3, 30), date(2026, 4, 5))),
            "30 March 2026 to 5 April 2026",
            id="days of two months",
        ),
    ],
)
def test_each_number_is_written_as_people_read_it(written: str, expected: str) -> None:
    assert plain(written) == expected


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(fmt.percent(None), id="percentage"),
        pytest.param(fmt.count(None), id="count"),
        pytest.param(fmt.average(None), id="mean"),
        pytest.param(fmt.level(None, Metric.COMPLETION), id="level"),
        pytest.param(fmt.level(None, Metric.LATENCY_P95), id="duration"),
        pytest.param(fmt.effect(None, TOKENS), id="effect"),
        pytest.param(fmt.interval(metric_of("tokens", interval=None)), id="interval"),
        pytest.param(fmt.bound(metric_of("tokens", bound=None)), id="bound"),
        pytest.param(fmt.largest_share(None), id="largest owner"),
        pytest.param(fmt.probability(None), id="p value"),
        pytest.param(fmt.plain_number(None), id="number of a check"),
        pytest.param(fmt.age(None), id="age"),
        pytest.param(fmt.share(None), id="share"),
    ],
)
def test_an_unknown_number_is_shown_in_words(written: str) -> None:
    assert written == "no data"


def test_a_sentence_keeps_units_on_the_line_and_hyphens_in_words() -> None:
    sentence = fmt.sentence("Could be -2.1 pp of -1 pp, 99 % of re-drawn gw-7 owners in 24 h.")

    assert sentence == (
        f"Could be {fmt.MINUS}2.1{fmt.GAP}pp of {fmt.MINUS}1{fmt.GAP}pp, "
        f"99{fmt.GAP}% of re-drawn gw-7 owners in 24{fmt.GAP}h."
    )


def test_a_sentence_writes_a_day_with_its_month_and_leaves_what_is_no_day() -> None:
    sentence = fmt.sentence(
        "1 day does not count (2026-11-13: an outage); policy-2026-11-01, 2026-13-45"
    )

    assert plain(sentence) == (
        "1 day does not count (13 November 2026: an outage); policy-2026-11-01, 2026-13-45"
    )


@given(st.text())
def test_a_sentence_changes_nothing_but_spaces_and_minus_signs(text: str) -> None:
    assert plain(fmt.sentence(text)) == plain(text)


@given(st.floats(min_value=-1, max_value=1))
def test_a_difference_shows_the_sign_of_its_effect_or_zero(number: float) -> None:
    written = plain(fmt.effect(number, metric_of("disruption", margin=None))).removesuffix(" pp")

    assert abs(float(written) - 100 * number) <= 0.0051
    assert written == "0.00" or written[0] == ("-" if number < 0 else "+")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param("the token is old", "The token is old.", id="a clause"),
        pytest.param("Reload it.", "Reload it.", id="a sentence"),
        pytest.param("", "", id="nothing"),
        pytest.param(ValueError("after 3 h"), f"After 3{fmt.GAP}h.", id="an error with a unit"),
    ],
)
def test_an_error_becomes_a_sentence(error: Exception | str, expected: str) -> None:
    assert fmt.error_sentence(error) == expected


def test_a_name_at_the_start_of_a_sentence_keeps_its_spelling() -> None:
    assert fmt.error_sentence("public-cloud requires internal", "public-cloud") == (
        "public-cloud requires internal."
    )
    assert fmt.error_sentence("repeated_tool_failure in internal has no wave").startswith(
        "repeated_"
    )
    assert (
        fmt.error_sentence("off-pin prompts were seen", "internal") == "Off-pin prompts were seen."
    )


@pytest.mark.parametrize("verdict", [*Verdict, None])
def test_a_sentence_beside_its_verdict_does_not_repeat_it(
    verdict: Verdict | None,
) -> None:
    lead = "For information" if verdict is None else sentences.LEADS[verdict]

    assert fmt.without_lead(f"{lead}: completion 93.12 %.", verdict) == (
        f"Completion 93.12{fmt.GAP}%."
    )
    assert fmt.without_lead("Within every margin: turns.", verdict) == "Within every margin: turns."
