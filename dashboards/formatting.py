"""Numbers, times and shares as people read them. What is unknown is said in words, never as 0."""

import re
from datetime import date, datetime

from control_plane.queries.pages_evaluation import MetricKind
from reducer.vocabulary import Metric

NO_DATA = "no data"
MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
GAP = "\N{NO-BREAK SPACE}"
# Spelled out here because strftime would follow the server's locale.
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip
_AGES = ((86_400, "day", "days"), (3_600, "h", "h"), (60, "min", "min"), (1, "s", "s"))


def sentence(text: str) -> str:
    """Return a sentence whose numbers keep their units on the same line and a true minus sign."""
    tied = re.sub(r"(?<=\d) (?=(?:%|pp|s|ms|min|h)\b|%)", GAP, text)
    return re.sub(r"(?<![\w-])-(?=\d)", MINUS, tied)


def told(error: Exception | str) -> str:
    """Return an error's message, or a reason, as a sentence that stands alone."""
    text = sentence(str(error)).strip()
    return text if not text else text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


def count(number: float | None) -> str:
    """Return a whole number with thousands separated."""
    return NO_DATA if number is None else f"{number:,.0f}".replace("-", MINUS)


def counted(number: float | None, one: str, many: str) -> str:
    """Return a number with the noun that fits it."""
    return f"{count(number)}{GAP}{one if number == 1 else many}"


def percent(fraction: float | None, digits: int = 1) -> str:
    """Return a fraction (0.931) as a percentage."""
    return NO_DATA if fraction is None else f"{_signless(100 * fraction, digits)}{GAP}%"


def share(basis_points: int | None) -> str:
    """Return basis points as a percentage without needless zeros: 500 is 5 %."""
    return NO_DATA if basis_points is None else f"{basis_points / 100:g}{GAP}%"


def average(number: float | None) -> str:
    """Return a mean per prompt: whole when it is large, with decimals when it is small."""
    if number is None:
        return NO_DATA
    decimals = 0 if abs(number) >= 100 else 1 if abs(number) >= 10 else 2
    return _signless(number, decimals)


def level(number: float | None, metric: Metric) -> str:
    """Return one cohort's level of a metric: a proportion, a duration, or a mean per prompt."""
    if metric is Metric.LATENCY_P95:
        return duration(number)
    return average(number) if metric.is_ratio else percent(number)


def duration(milliseconds: float | None) -> str:
    """Return a duration in seconds, or in milliseconds below one."""
    if milliseconds is None:
        return NO_DATA
    if milliseconds < 1000:
        return f"{average(milliseconds)}{GAP}ms"
    return f"{average(milliseconds / 1000)}{GAP}s"


def effect(number: float | None, kind: MetricKind) -> str:
    """Return a comparison in its native unit: signed percentage points, or a ratio."""
    if number is None:
        return NO_DATA
    if kind is MetricKind.DIFFERENCE:
        return f"{_signed(100 * number)}{GAP}pp"
    return f"{TIMES}{_signless(number, 3)}"


def effect_range(low: float, high: float, kind: MetricKind) -> str:
    """Return an interval in native units, the unit named once."""
    if kind is MetricKind.DIFFERENCE:
        return f"{_signed(100 * low)} to {_signed(100 * high)}{GAP}pp"
    return f"{TIMES}{_signless(low, 3)} to {TIMES}{_signless(high, 3)}"


def probability(number: float | None) -> str:
    """Return a p value to three digits; a smaller one is said to be smaller."""
    if number is None:
        return NO_DATA
    return "< 0.001" if number < 0.001 else f"{number:.3f}"


def plain_number(number: float | str | None) -> str:
    """Return a number of a check as it was reported, or its words."""
    if number is None:
        return NO_DATA
    if isinstance(number, str):
        return number
    if float(number).is_integer():
        return count(number)
    return _signless(number, 4).rstrip("0")


def age(seconds: float | None) -> str:
    """Return how long ago, in its largest whole unit."""
    if seconds is None:
        return NO_DATA
    for size, one, many in _AGES:
        if seconds >= size:
            whole = int(seconds // size)
            return f"{whole}{GAP}{one if whole == 1 else many} ago"
    return "just now"


def day(value: date) -> str:
    """Return a date with its month's name."""
    return f"{value.day}{GAP}{_MONTHS[value.month - 1]} {value.year}"


def clock(value: datetime) -> str:
    """Return the time of day, to the second, in UTC."""
    return f"{value:%H:%M:%S}{GAP}UTC"


def moment(value: datetime) -> str:
    """Return a date with its month's name, and the minute in UTC."""
    return f"{day(value)}, {value:%H:%M}{GAP}UTC"


def days_used(days: tuple[date, ...]) -> str:
    """Return the span of days an evaluation used, or that it used none."""
    if not days:
        return "no complete day yet"
    first, last = min(days), max(days)
    if first == last:
        return day(first)
    is_one_month = (first.year, first.month) == (last.year, last.month)
    return f"{first.day if is_one_month else day(first)} to {day(last)}"


def _signless(number: float, digits: int) -> str:
    return f"{number:,.{digits}f}".replace("-", MINUS)


def _signed(number: float) -> str:
    text = f"{number:+,.2f}"
    # A value that rounds to zero has no sign to show.
    return text.lstrip("+-") if not float(text.replace(",", "")) else text.replace("-", MINUS)
