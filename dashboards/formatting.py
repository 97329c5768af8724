"""Formatting: numbers, times and shares as people read them; an unknown value is never 0."""

import re
from collections.abc import Mapping
from datetime import date, datetime

from guardwave.control_plane.queries.evaluation_model import MetricView
from guardwave.reducer import number_format
from guardwave.reducer.vocabulary import Metric, Verdict

NO_DATA = "no data"
MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
GAP = "\N{NO-BREAK SPACE}"
# Spelled out here because strftime would follow the server's locale.
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip
_DAY = re.compile(r"(?<![\w-])[0-9]{4}-[0-9]{2}-[0-9]{2}(?![\w-])")
# A code or a guard's name: no other word of a sentence contains an underscore.
_NAME = re.compile(r"[a-z0-9]*_[a-z0-9_]*")
# The first words of an evaluation's sentences, as `analysis.sentences` writes them.
_LEADS: Mapping[Verdict | None, str] = {
    Verdict.WITHIN: "Within",
    Verdict.UNPROVEN: "Not proven",
    Verdict.NO_DATA: "No data",
    Verdict.BEYOND: "Beyond",
    Verdict.INVALID: "Not valid",
    None: "For information",
}
_AGES = ((86_400, "day", "days"), (3_600, "h", "h"), (60, "min", "min"), (1, "s", "s"))


def sentence(text: str) -> str:
    """Return a sentence with true minus signs, whose numbers stay on one line with their units.

    Days are written with the name of their month, as everywhere on the pages.
    """
    text = _DAY.sub(_named_day, text)
    tied = re.sub(r"(?<=\d) (?=(?:%|pp|s|ms|min|h)\b|%)", GAP, text)
    return re.sub(r"(?<![\w-])-(?=\d)", MINUS, tied)


def error_sentence(error: Exception | str, *names: str) -> str:
    """Return an error's message, or a reason, as a sentence that stands alone.

    It begins with a capital letter, unless its first word is one of the names or looks like a
    name: names keep their spelling.
    """
    text = sentence(str(error)).strip()
    if not text:
        return text
    first = text.split(maxsplit=1)[0].rstrip(",:;.")
    is_name = first in names or _NAME.fullmatch(first) is not None
    return f"{text if is_name else capital(text)}{'' if text[-1] in '.!?' else '.'}"


def capital(text: str) -> str:
    """Return the text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def without_lead(text: str, verdict: Verdict | None) -> str:
    """Return a sentence without the words of its verdict, for use beside the verdict's mark.

    Without a verdict the sentence is for information.
    """
    lead = f"{_LEADS[verdict]}: "
    return sentence(capital(text.removeprefix(lead)) if text.startswith(lead) else text)


def count(number: float | None) -> str:
    """Return a whole number with thousands separated."""
    return NO_DATA if number is None else f"{number:,.0f}".replace("-", MINUS)


def quantity(number: float | None, one: str, many: str) -> str:
    """Return a number with its noun, singular or plural."""
    return f"{count(number)}{GAP}{one if number == 1 else many}"


def percent(fraction: float | None, digits: int = 1) -> str:
    """Return a fraction, such as 0.931, as a percentage."""
    return NO_DATA if fraction is None else f"{_decimal(100 * fraction, digits)}{GAP}%"


def share(basis_points: int | None) -> str:
    """Return basis points as a percentage without trailing zeros: 500 is 5 %."""
    return NO_DATA if basis_points is None else f"{basis_points / 100:g}{GAP}%"


def average(number: float | None) -> str:
    """Return a mean per prompt: whole when it is large, with decimals when it is small."""
    if number is None:
        return NO_DATA
    decimals = 0 if abs(number) >= 100 else 1 if abs(number) >= 10 else 2
    return _decimal(number, decimals)


def level(number: float | None, metric: Metric) -> str:
    """Return one cohort's level of a metric: a proportion, a duration, or a mean per prompt."""
    return NO_DATA if number is None else sentence(number_format.level(metric, number))


def effect(number: float | None, of: MetricView) -> str:
    """Return an effect of a metric: signed percentage points, or a ratio."""
    return (
        NO_DATA
        if number is None
        else _of_unit(of, number_format.effect(of.metric, number, of.margin))
    )


def bound(of: MetricView) -> str:
    """Return a metric's official bound, rounded towards harm as in its sentence."""
    if of.bound is None:
        return NO_DATA
    return _of_unit(of, number_format.bound(of.metric, of.bound, of.margin))


def margin(of: MetricView) -> str:
    """Return how much worse a metric may be."""
    return "none" if of.margin is None else _of_unit(of, number_format.margin(of.metric, of.margin))


def interval(of: MetricView) -> str:
    """Return the interval that belongs to a metric's verdict, rounded outwards."""
    shown = of.shown_interval
    if shown is None:
        return NO_DATA
    low, high = number_format.ends(of.metric, shown.low, shown.high, of.margin)
    if of.metric.is_ratio:
        return f"{TIMES}{low} to {TIMES}{high}"
    return f"{_minus(low)} to {_minus(high)}{GAP}pp"


def largest_share(fraction: float | None) -> str:
    """Return the share of the largest owner, which is never shown as 0."""
    is_tiny = fraction is not None and 0 < fraction < 0.001
    return f"under 0.1{GAP}%" if is_tiny else percent(fraction)


def probability(number: float | None) -> str:
    """Return a p value to three decimals, or that it is below 0.001."""
    if number is None:
        return NO_DATA
    return "< 0.001" if number < 0.001 else f"{number:.3f}"


def plain_number(number: float | str | None) -> str:
    """Return a number of a check as it was reported, or its text."""
    if number is None:
        return NO_DATA
    if isinstance(number, str):
        return number
    if float(number).is_integer():
        return count(number)
    return _decimal(number, 4).rstrip("0")


def age(seconds: float | None) -> str:
    """Return the time since a moment, in the largest unit that fits."""
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
    """Return the span of days that an evaluation used, or that there is none yet."""
    if not days:
        return "no complete day yet"
    first, last = min(days), max(days)
    if first == last:
        return day(first)
    is_one_month = (first.year, first.month) == (last.year, last.month)
    return f"{first.day if is_one_month else day(first)} to {day(last)}"


def _decimal(number: float, digits: int) -> str:
    return f"{number:,.{digits}f}".replace("-", MINUS)


def _named_day(found: re.Match[str]) -> str:
    try:
        return day(date.fromisoformat(found[0]))
    except ValueError:
        return found[0]


def _of_unit(of: MetricView, number: str) -> str:
    return f"{TIMES}{number}" if of.metric.is_ratio else f"{_minus(number)}{GAP}pp"


def _minus(number: str) -> str:
    return number.replace("-", MINUS)
