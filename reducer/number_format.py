"""Number format: the one written form of a metric's numbers, in sentences and in tables.

A difference is written in percentage points with its sign and two decimals, a ratio with three.
More decimals follow if rounding would move a value to the other side of the margin, or show the
end of an interval as no effect.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from guardwave.reducer.vocabulary import Metric

DIFFERENCE_DIGITS, RATIO_DIGITS, MOST_DIGITS = 2, 3, 6
# Enough digits for the largest ratio that a float can hold.
_WIDE = Context(prec=400)


def effect(metric: Metric, value: float, margin: float | None) -> str:
    """Write an effect without its unit: 0.002 as "+0.20", a ratio as "1.011"."""
    return _rounded(metric, value, margin, ROUND_HALF_EVEN)


def bound(metric: Metric, value: float, margin: float | None) -> str:
    """Write a one-sided bound, rounded towards harm."""
    towards = ROUND_FLOOR if metric.is_higher_better else ROUND_CEILING
    return _rounded(metric, value, margin, towards)


def ends(metric: Metric, low: float, high: float, margin: float | None) -> tuple[str, str]:
    """Write both ends of an interval, rounded outwards."""
    return (
        _rounded(metric, low, margin, ROUND_FLOOR),
        _rounded(metric, high, margin, ROUND_CEILING),
    )


def margin(metric: Metric, value: float) -> str:
    """Write a margin with as many digits as it was given, at most six."""
    return _rounded(metric, value, value, ROUND_HALF_EVEN)


def level(metric: Metric, value: float) -> str:
    """Write one cohort's level with its unit: a rate, seconds, or a mean per prompt."""
    if not metric.is_ratio:
        return f"{100.0 * value:.2f} %"
    if metric is Metric.LATENCY_P95:
        return seconds(value)
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.2f}"


def seconds(milliseconds: float) -> str:
    """Write a duration in seconds: "0.840 s", "8.41 s", "100.5 s"."""
    value = milliseconds / 1000.0
    digits = 3 if value < 1.0 else 2 if value < 10.0 else 1
    return f"{value:,.{digits}f} s"


def _rounded(metric: Metric, value: float, margin: float | None, rounding: str) -> str:
    """Write a value with as few digits as still show the right side of the margin.

    An end of an interval also keeps digits until it differs from no effect: a difference of 0 or
    a ratio of 1.
    """
    power, digits, sign = (0, RATIO_DIGITS, "") if metric.is_ratio else (2, DIFFERENCE_DIGITS, "+")
    exact = Decimal(repr(float(value))).scaleb(power)
    limit = None if margin is None else Decimal(repr(float(margin))).scaleb(power)
    no_effect = Decimal(1 if metric.is_ratio else 0)
    while True:
        shown = exact.quantize(Decimal(1).scaleb(-digits), rounding, _WIDE)
        is_faithful = limit is None or _side(shown, limit) == _side(exact, limit)
        if rounding != ROUND_HALF_EVEN:
            is_faithful = is_faithful and (shown != no_effect or exact == no_effect)
        if is_faithful or digits >= MOST_DIGITS:
            break
        digits += 1
    # Zero is written without a sign.
    return f"{shown:{sign}.{digits}f}" if shown else f"{abs(shown):.{digits}f}"


def _side(value: Decimal, limit: Decimal) -> int:
    return (value > limit) - (value < limit)
