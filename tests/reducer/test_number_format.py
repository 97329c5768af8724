"""Number format: numbers of metrics in sentences and tables."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.reducer import number_format
from guardwave.reducer.vocabulary import Metric

RATES = st.floats(-0.5, 0.5, allow_nan=False)
RATIOS = st.floats(0.01, 100.0, allow_nan=False)


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        pytest.param(number_format.effect(Metric.DISRUPTION, 0.0012, 0.005), "+0.12", id="more"),
        pytest.param(number_format.effect(Metric.COMPLETION, -0.008, -0.01), "-0.80", id="less"),
        pytest.param(
            number_format.effect(Metric.COMPLETION, -0.00001, -0.01), "0.00", id="nothing"
        ),
        pytest.param(number_format.effect(Metric.TOKENS, 1.0113, 1.1), "1.011", id="a ratio"),
        pytest.param(
            number_format.effect(Metric.TURNS, 1.09999, 1.1), "1.09999", id="by the margin"
        ),
        pytest.param(number_format.margin(Metric.COMPLETION, -0.01), "-1.00", id="a margin"),
        pytest.param(
            number_format.margin(Metric.DISRUPTION, 0.00125), "+0.125", id="a finer margin"
        ),
        pytest.param(number_format.margin(Metric.TOKENS, 1.1), "1.100", id="a margin of a ratio"),
        pytest.param(number_format.level(Metric.COMPLETION, 0.93124), "93.12 %", id="a rate"),
        pytest.param(number_format.level(Metric.TOKENS, 14_310.5), "14,310", id="tokens"),
        pytest.param(number_format.level(Metric.TURNS, 6.021), "6.02", id="turns"),
        pytest.param(number_format.level(Metric.LATENCY_P95, 100_524.0), "100.5 s", id="minutes"),
        pytest.param(number_format.level(Metric.LATENCY_P95, 8_414.0), "8.41 s", id="seconds"),
        pytest.param(number_format.level(Metric.LATENCY_P95, 840.0), "0.840 s", id="less than one"),
    ],
)
def test_a_number_is_written_as_people_read_it(shown: str, words: str) -> None:
    assert shown == words


@given(low=RATES, width=st.floats(0.0, 0.3), margin=st.floats(0.001, 0.2))
def test_an_interval_is_rounded_outwards(low: float, width: float, margin: float) -> None:
    ends = number_format.ends(Metric.DISRUPTION, low, low + width, margin)
    least, most = (Decimal(end) for end in ends)
    assert least <= Decimal(repr(low)).scaleb(2)
    assert most >= Decimal(repr(low + width)).scaleb(2)


@given(value=RATIOS, margin=st.floats(1.01, 2.0))
def test_a_bound_never_reads_better_than_it_is(value: float, margin: float) -> None:
    assert Decimal(number_format.bound(Metric.TOKENS, value, margin)) >= Decimal(repr(value))


@given(value=RATES, margin=st.floats(0.001, 0.2).map(lambda share: round(share, 4)))
def test_an_estimate_reads_on_its_own_side_of_the_margin(value: float, margin: float) -> None:
    value = round(value, 6)
    shown = Decimal(number_format.effect(Metric.DISRUPTION, value, margin))
    limit = Decimal(number_format.margin(Metric.DISRUPTION, margin))
    assert (shown > limit) == (value > margin)
    assert (shown < limit) == (value < margin)
