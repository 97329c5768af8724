"""Tables of docs/coverage.md: the counts by cell, and the limits that the proof must keep."""

import math
import platform
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version

from benchmarks.proof import outcomes, owners, waves
from benchmarks.proof.outcomes import Harm
from benchmarks.proof.owners import CARRIERS, Amount, Rate, Sizes
from benchmarks.proof.tallies import Cell, Design, Passes
from guardwave.reducer.vocabulary import Metric

POOLED_LIMIT = 0.055
CONCENTRATED_LIMIT = 0.10
CONCENTRATED_FROM = 1_000
# The limit for harm in few owners was set for these metrics.
RATES = (Metric.COMPLETION, Metric.DISRUPTION)
ABOUT = """Made by `{command}`: {waves:,} simulated rosters, seed {seed}, {permutations:,} random
sets for each test, Python {python}, {packages}. The same command and seed give the same counts; a
run that was broken off goes on where it stopped.

- **Owners**: 5 % are treated. Prompts a week have mean {prompts:g}: `equal`, `lognormal` (CV^2
  1.26) or `zipf` (a Pareto tail of exponent {exponent:g}, CV^2 6.15); {cancelled:g} % are
  cancelled.
- **Rates**, beta-binomial: {rates}.
- **Amounts**, margin {amount:g}: gamma tokens, gamma-Poisson turns, lognormal durations; owners
  differ by a lognormal factor with standard deviations {amounts}. Durations come in base-2
  buckets of scale {scale}, where the nearest testable margin is {tested:.4f}: that is the true
  harm.
- **Baseline**: a week before the wave, with {lasting:g} % of each owner effect's variance in
  common; {new:g} % of the owners are new.
- **Harm** is added to the treated owners by random numbers of the simulation. The test injects its
  margin into the other owners by hashes; the two share no random number.
- Left out here: minimum data (the test is judged where the gate would not even use it), the
  search for the bound, and the second test with more random sets where p is near alpha."""
AT_MARGIN = """The true harm is exactly the margin, so at most 5 % of waves may pass. `test` is
the decision test alone; `both` also needs the CR2 bound inside the margin, as the gate does;
`CR2 t` is the textbook interval alone. Percent of waves."""
CONCENTRATED = """One owner in fifty carries all the harm; over all owners it is exactly the
margin. The test is not exact for that hypothesis, and its level does not hold here. Where the draw
chose no such owner, the treated do no harm, and every test that has power passes them: `missed` is
that share, the chance to choose none times the power of the test without harm. Where the draw chose
some, their weight is often below their share, more so with uneven sizes, and then estimate and
standard error are too small together. The differences between owners hide this for completion and
disruption; turns differ little between owners, so that little noise hides it. Percent of waves that
pass."""
POWER = """The guard does nothing. The share that the test passes is its power; CR2 t passes more
because it also passes harmful guards. `unstudentised` compares plain differences over the same
random sets. Percent of waves."""

Counts = Mapping[Cell, Passes]


def share(passes: Passes) -> float:
    """Return the share of the waves that the decision test passed."""
    return passes.test / passes.waves


def is_broken(cell: Cell, passes: Passes) -> bool:
    """Whether a cell passes too often to be chance: 3 standard errors above its limit.

    That is alpha at the margin, and `CONCENTRATED_LIMIT` for rates of harm that few owners carry.
    """
    if cell.harm is Harm.CONCENTRATED:
        return _is_limited(cell) and _clearly_above(passes, CONCENTRATED_LIMIT)
    return cell.harm is Harm.AT_MARGIN and _clearly_above(passes, waves.ALPHA)


def pooled(counts: Counts) -> float:
    """Return the mean false promotion of all cells at the margin, with equal weights."""
    shares = [share(passes) for cell, passes in counts.items() if cell.harm is Harm.AT_MARGIN]
    return sum(shares) / len(shares)


def report(counts: Counts, design: Design, command: str, *, missing: int) -> str:
    """Return the document; `missing` chunks are still to be run."""
    cuped = ("test, CUPED", _with_cuped(counts, "test"))
    test = ("test", _passed("test"))
    interval = ("CR2 t", _passed("interval"))
    both = [("both", _passed("both")), ("both, CUPED", _with_cuped(counts, "both"))]
    missed = ("missed", _missed(counts))
    unstudentised = ("unstudentised", _passed("unstudentised"))
    parts = [
        "# How often the gate promotes a guard that it should not",
        _about(counts, design, command),
        "## Found",
        f"**Unfinished**: {missing} chunks are still to be run." if missing else "",
        _found(counts),
        in_short(counts),
        "## False promotion at the margin",
        AT_MARGIN,
        _table(counts, Harm.AT_MARGIN, [test, cuped, *both, interval]),
        "## Harm that few owners carry",
        CONCENTRATED,
        _table(counts, Harm.CONCENTRATED, [test, cuped, missed, unstudentised, interval]),
        "## Power without harm",
        POWER,
        _table(counts, Harm.NONE, [test, cuped, unstudentised, interval]),
    ]
    return "\n\n".join(part for part in parts if part)


def in_short(counts: Counts) -> str:
    """Return a row for each number of owners: mean and range over metrics and sizes."""
    head = ["owners", "treated", "the test", "the test, CUPED", "CR2 t interval"]
    rows = []
    for count in sorted({cell.owners for cell in counts}):
        cells = [
            (cell, passes)
            for cell, passes in counts.items()
            if cell.owners == count and cell.harm is Harm.AT_MARGIN
        ]
        plain = [passes for cell, passes in cells if not cell.has_cuped]
        cuped = [passes for cell, passes in cells if cell.has_cuped]
        rows.append(
            [
                f"{count:,}",
                str(max(1, int(count * waves.TREATED))),
                _range([share(passes) for passes in plain]),
                _range([share(passes) for passes in cuped]),
                _range([passes.interval / passes.waves for passes in plain]),
            ]
        )
    return _lines([head, ["---:"] * len(head), *rows])


def _about(counts: Counts, design: Design, command: str) -> str:
    rates = "; ".join(
        f"{rate} rate {rate.mean:g}, ICC {rate.icc:g}, margin {100 * outcomes.MARGINS[rate]:g} pp"
        for rate in Rate
    )
    at_margin = {cell: passes for cell, passes in counts.items() if cell.harm is Harm.AT_MARGIN}
    return ABOUT.format(
        command=command,
        waves=sum({cell[:2]: passes.waves for cell, passes in at_margin.items()}.values()),
        seed=design.seed,
        permutations=design.permutations,
        python=platform.python_version(),
        packages=", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "pandas")),
        prompts=owners.MEAN_PROMPTS,
        exponent=owners.PARETO_EXPONENT,
        cancelled=100 * outcomes.CANCELLED,
        rates=rates,
        amount=outcomes.AMOUNT_MARGIN,
        amounts=", ".join(f"{amount} {amount.sigma:g}" for amount in Amount),
        scale=outcomes.SCALE,
        tested=2.0 ** (outcomes.SHIFT / outcomes.BUCKETS_PER_DOUBLING),
        lasting=100 * owners.PERSISTENCE,
        new=100 * owners.NEW_OWNERS,
    )


def _found(counts: Counts) -> str:
    at_margin = {cell: passes for cell, passes in counts.items() if cell.harm is Harm.AT_MARGIN}
    broken = [cell for cell, passes in at_margin.items() if is_broken(cell, passes)]
    shares = [share(passes) for passes in at_margin.values()]
    mean = f"{100 * pooled(counts):.2f} % (limit {100 * POOLED_LIMIT:g} %)"
    line = (
        f"- At the margin: {len(shares)} cells, from {_percent(min(shares))} to "
        f"{_percent(max(shares))} %, mean {mean}. More than 3 standard errors above 5 %: "
        f"{', '.join(_title(cell) for cell in broken) or 'none'}."
    )
    return f"{line}\n{_few_owners(counts)}"


def _few_owners(counts: Counts) -> str:
    concentrated = {
        cell: passes
        for cell, passes in counts.items()
        if cell.harm is Harm.CONCENTRATED and cell.owners >= CONCENTRATED_FROM
    }
    rates = [share(passes) for cell, passes in concentrated.items() if _is_limited(cell)]
    limit, chance = f"{100 * CONCENTRATED_LIMIT:g} %", "more than 3 standard errors above"
    return (
        f"- Harm that few owners carry, from {CONCENTRATED_FROM:,} owners on. The limit for rates "
        f"of harm is {limit}: {len(rates)} cells{_from_to(rates)}; {chance}: "
        f"{_above(counts, [cell for cell in concentrated if _is_limited(cell)])}. For amounts no "
        "test with power could keep that limit; the table below shows why. "
        f"{chance.capitalize()} {limit}: "
        f"{_above(counts, [cell for cell in concentrated if not _is_limited(cell)])}."
    )


def _is_limited(cell: Cell) -> bool:
    return cell.owners >= CONCENTRATED_FROM and cell.metric in RATES


def _above(counts: Counts, cells: Iterable[Cell]) -> str:
    missed = _missed(counts)
    above = [
        f"{_title(cell)} {_percent(share(counts[cell]))} % ({missed(cell, counts[cell])} % missed)"
        for cell in cells
        if _clearly_above(counts[cell], CONCENTRATED_LIMIT)
    ]
    return ", ".join(above) or "none"


def _from_to(shares: list[float]) -> str:
    return f", from {_percent(min(shares))} to {_percent(max(shares))} %" if shares else ""


def _range(shares: list[float]) -> str:
    mean = sum(shares) / len(shares)
    return f"{_percent(mean)} ({_percent(min(shares))} to {_percent(max(shares))})"


def _clearly_above(passes: Passes, limit: float) -> bool:
    passed = share(passes)
    return passed - 3.0 * math.sqrt(passed * (1.0 - passed) / passes.waves) > limit


def _title(cell: Cell) -> str:
    kind = " with CUPED" if cell.has_cuped else ""
    return f"{cell.metric} {cell.sizes} {cell.owners:,}{kind}"


Column = tuple[str, Callable[[Cell, Passes], str]]


def _passed(what: str) -> Callable[[Cell, Passes], str]:
    return lambda _, passes: _percent(getattr(passes, what) / passes.waves)


def _with_cuped(counts: Counts, what: str) -> Callable[[Cell, Passes], str]:
    def passed(cell: Cell, _: Passes) -> str:
        cuped = counts.get(cell._replace(has_cuped=True))
        return "" if cuped is None else _passed(what)(cell, cuped)

    return passed


def _missed(counts: Counts) -> Callable[[Cell, Passes], str]:
    """Return the percentage of waves that miss every carrier and pass as a harmless guard does."""

    def missed(cell: Cell, _: Passes) -> str:
        treated = max(1, int(cell.owners * waves.TREATED))
        power = share(counts[cell._replace(harm=Harm.NONE)])
        return _percent((1.0 - CARRIERS) ** treated * power)

    return missed


def _table(counts: Counts, harm: Harm, columns: list[Column]) -> str:
    metrics, sizes = list(Metric), list(Sizes)
    cells = sorted(
        (cell for cell in counts if cell.harm is harm and not cell.has_cuped),
        key=lambda cell: (metrics.index(cell.metric), sizes.index(cell.sizes), cell.owners),
    )
    head = ["metric", "sizes", "owners", "waves", *(title for title, _ in columns)]
    rule = ["---", "---", *["---:"] * (len(head) - 2)]
    rows = [
        [cell.metric, cell.sizes, f"{cell.owners:,}", f"{counts[cell].waves:,}"]
        + [entry(cell, counts[cell]) for _, entry in columns]
        for cell in cells
    ]
    return _lines([head, rule, *rows])


def _lines(rows: Iterable[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _percent(part: float) -> str:
    return f"{100.0 * part:.1f}"
