"""`guardwave analyze`: the verdict on a file of owners, by the same tests as a gate."""

import csv
import io
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click
import pandas as pd
from rich.console import Console
from rich.table import Column, Table

from guardwave.analysis.offline import Arms, OfflineResult, analyse, to_wire
from guardwave.analysis.report import MetricResult
from guardwave.analysis.sentences import label
from guardwave.control_plane.core import policy as policies
from guardwave.reducer.rollout.policy import GatePolicy
from guardwave.reducer.vocabulary import Gate, Metric, Verdict

SEPARATORS = ",;\t|"
# The first bytes of files that are no text, and what to do about each.
_REMEDIES_BY_MAGIC = {
    b"\x1f\x8b": "it is compressed by gzip; unpack it, with gunzip for one",
    b"PK\x03\x04": "it is a zip archive or a spreadsheet; save the sheet as CSV, in UTF-8",
    b"PAR1": "it is a Parquet file; write its rows as CSV, with pandas for one",
}
# As documented in docs/operate.md; a wrong file ends with 1, wrong usage with 2.
EXIT_CODES: Mapping[Verdict, int] = {
    Verdict.WITHIN: 0,
    Verdict.UNPROVEN: 3,
    Verdict.BEYOND: 4,
    Verdict.NO_DATA: 6,
    Verdict.INVALID: 9,
}
_METRICS = (
    Metric.COMPLETION,
    Metric.DISRUPTION,
    Metric.TOKENS,
    Metric.TURNS,
    Metric.LATENCY_P95,
)
_PIPE_WIDTH = 160


@click.command()
@click.argument("owners", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--treated", default="enforce", show_default=True, help="The arm that was treated.")
@click.option("--control", default="warn", show_default=True, help="The arm to compare with.")
@click.option(
    "--alpha",
    type=click.FloatRange(0.0, 0.5, min_open=True, max_open=True),
    help="One-sided; the policy's when left out.",
)
@click.option("--no-cuped", is_flag=True, help="Leave the pre_* columns out of the test.")
@click.option(
    "--margin",
    "margins",
    multiple=True,
    metavar="METRIC=VALUE",
    help="How much worse it may be: 0.01 is one percentage point, 1.10 a ratio. May be repeated.",
)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
def analyze(  # noqa: PLR0913  # click passes every option by name
    owners: Path,
    *,
    treated: str,
    control: str,
    alpha: float | None,
    no_cuped: bool,
    margins: Sequence[str],
    output: str,
) -> None:
    """Judge OWNERS, a CSV file with a row per owner, and end with the verdict's exit code.

    0 within, 3 unproven, 4 beyond a margin, 6 no data, 9 not valid; 1 when the file is wrong.
    """
    if alpha is not None and math.isnan(alpha):
        raise click.UsageError("--alpha 'nan' is no number; it is between 0 and 0.5")
    policy = _policy(alpha, margins)
    try:
        file = read_owner_file(owners)
        result = analyse(file, Arms(treated, control), policy, is_cuped=not no_cuped)
    except ValueError as error:
        raise click.ClickException(f"{owners}: {error}") from error
    except (ArithmeticError, MemoryError) as error:
        why = "its numbers are too large to compute with; look for a count far above the others"
        raise click.ClickException(f"{owners}: {why} ({type(error).__name__})") from error
    for remark in result.remarks:
        click.echo(f"{owners}: {remark}", err=True)
    if output == "json":
        click.echo(json.dumps(to_wire(result), allow_nan=False))
    else:
        _print(result)
    raise SystemExit(EXIT_CODES[result.verdict])


def _policy(alpha: float | None, margins: Sequence[str]) -> GatePolicy:
    """Return the policy in force, with the changes that the options make.

    Raises:
        UsageError: an option names no metric or no margin.
    """
    file = os.environ.get("GUARDWAVE_POLICY")
    base = policies.load(Path(file) if file else None).base
    chosen = {metric: base.margins[Gate.ENFORCE].get(metric) for metric in _METRICS}
    # A policy may leave latency out of its gate; a file is judged on all five metrics.
    chosen[Metric.LATENCY_P95] = chosen[Metric.LATENCY_P95] or chosen[Metric.TOKENS]
    for text in margins:
        metric, value = _margin(text)
        chosen[metric] = value
    kept = {metric: value for metric, value in chosen.items() if value is not None}
    return replace(
        base,
        alpha=base.alpha if alpha is None else alpha,
        margins={**base.margins, Gate.ENFORCE: kept},
    )


def _margin(text: str) -> tuple[Metric, float]:
    name, _, value = text.partition("=")
    known = [metric.value for metric in _METRICS]
    if name not in known:
        raise click.UsageError(f"--margin {text!r}: {name!r} is none of {', '.join(known)}")
    metric = Metric(name)
    try:
        margin = float(value)
    except ValueError:
        margin = float("nan")
    if not (1.0 < margin < float("inf") if metric.is_ratio else 0.0 < margin < 1.0):
        allowed = "a ratio above 1, such as 1.10" if metric.is_ratio else "between 0 and 1"
        raise click.UsageError(f"--margin {text!r}: {value!r} is no margin; it is {allowed}")
    return metric, margin


def _print(result: OfflineResult) -> None:
    numbers = [Column(name, justify="right") for name in (*result.arms, "effect", "bound", "p")]
    table = Table("metric", *numbers, Column("margin", justify="right"), "verdict", box=None)
    for metric in result.metrics:
        table.add_row(*_cells(metric))
    console = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)
    console.print(table)
    for metric in result.metrics:
        click.echo(metric.sentence)
    click.echo(f"balance: {result.balance.sentence}")
    for note in result.notes:
        click.echo(f"information: {note.sentence}")
    click.echo(f"{result.verdict}: {result.sentence}")


def _cells(result: MetricResult) -> tuple[str, ...]:
    figures = result.figures
    shown = (
        figures.treated.value,
        figures.reference.value,
        figures.estimate,
        figures.bound,
        figures.p_harm_at_margin,
        figures.margin,
    )
    verdict = "" if result.verdict is None else result.verdict.value
    why = "" if result.reason is None else f" ({result.reason})"
    return (label(figures.metric), *map(_number, shown), f"{verdict}{why}")


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.5g}"


def read_owner_file(file: Path) -> pd.DataFrame:
    """Return the rows as strings, indexed by line number. An owner may be called NA.

    The header line shows whether commas, semicolons, tabs or bars separate the columns.

    Raises:
        ValueError: the file is not UTF-8 text in columns with a header.
    """
    text = _decode(file.read_bytes())
    separator = _find_separator(text)
    _check_header(text, separator)
    try:
        table = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=False,
            skipinitialspace=True,
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        reason = str(error).strip()
        raise ValueError(
            f"it is no CSV file with a header line, read with the separator {separator!r}: {reason}"
        ) from error
    if not isinstance(table.index, pd.RangeIndex):
        raise ValueError("its rows have more cells than its header; name every column")
    if len(table.columns) == 1:
        raise ValueError(
            f"its header has one column, {table.columns[0]!r}, with the separator {separator!r}; "
            "separate columns by commas, semicolons or tabs"
        )
    table.index = pd.RangeIndex(2, len(table) + 2)
    table = table.fillna("")
    return table[(table != "").any(axis=1)]


def _decode(data: bytes) -> str:
    for magic, remedy in _REMEDIES_BY_MAGIC.items():
        if data.startswith(magic):
            raise ValueError(remedy)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"line {line} holds the byte 0x{data[error.start]:02x}, which is not UTF-8; save the "
            "file as UTF-8"
        ) from None


def _find_separator(text: str) -> str:
    try:
        return csv.Sniffer().sniff(text.partition("\n")[0], delimiters=SEPARATORS).delimiter
    except csv.Error:
        return ","


def _check_header(text: str, separator: str) -> None:
    """Reject a column name that stands twice: pandas would rename the second silently."""
    rows = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    try:
        names = Counter(name.strip() for name in next(rows, []))
    except csv.Error as error:
        raise ValueError(f"its header line cannot be read: {error}") from error
    for name, times in names.items():
        if name and times > 1:
            raise ValueError(f"column {name!r} is there {times} times; keep one of them")
