"""Coverage tables: the document states what the counts show and what is still missing."""

import re

import pytest

from benchmarks.proof import tables
from benchmarks.proof.outcomes import Harm
from benchmarks.proof.owners import Sizes
from benchmarks.proof.tallies import Cell, Design, Passes
from guardwave.reducer.vocabulary import Metric

DESIGN = Design(seed=1, permutations=199, chunk_size=10)
AT_MARGIN = Cell(1_000, Sizes.ZIPF, Metric.TOKENS, False, Harm.AT_MARGIN)


def counts(*, at_margin: int, concentrated: int = 300, metric: Metric = Metric.TOKENS):
    """Return one metric's cells of 4,000 waves each, with and without CUPED."""
    passed = {Harm.AT_MARGIN: at_margin, Harm.CONCENTRATED: concentrated, Harm.NONE: 1_000}
    return {
        AT_MARGIN._replace(metric=metric, harm=harm, has_cuped=has_cuped): Passes(
            4_000, test, 500, test, 7
        )
        for harm, test in passed.items()
        for has_cuped in (False, True)
    }


@pytest.mark.parametrize(
    ("passed", "is_broken"),
    [
        pytest.param(200, False, id="5 %"),
        pytest.param(241, False, id="6.025 %, 2.7 standard errors above"),
        pytest.param(250, True, id="6.25 %, 3.3 standard errors above"),
    ],
)
def test_a_cell_is_broken_three_standard_errors_above_alpha(passed, is_broken):
    assert tables.is_broken(AT_MARGIN, Passes(4_000, passed)) is is_broken


@pytest.mark.parametrize("harm", [Harm.NONE, Harm.CONCENTRATED], ids=str)
def test_amounts_break_a_cell_at_the_margin_alone(harm):
    assert not tables.is_broken(AT_MARGIN._replace(harm=harm), Passes(4_000, 4_000))


@pytest.mark.parametrize(
    ("owners", "passed", "is_broken"),
    [
        pytest.param(1_000, 457, False, id="11.4 %, 2.8 standard errors above 10 %"),
        pytest.param(1_000, 470, True, id="11.75 %, 3.4 standard errors above 10 %"),
        pytest.param(200, 4_000, False, id="a roster without a limit"),
    ],
)
def test_a_rate_of_harm_in_few_owners_has_a_limit_of_its_own(owners, passed, is_broken):
    cell = Cell(owners, Sizes.ZIPF, Metric.DISRUPTION, True, Harm.CONCENTRATED)
    assert tables.is_broken(cell, Passes(4_000, passed)) is is_broken


def test_the_document_names_what_broke_and_what_is_missing():
    report = tables.report(counts(at_margin=260), DESIGN, "a command", missing=3)
    assert "**Unfinished**: 3 chunks" in report
    assert "above 5 %: tokens zipf 1,000, tokens zipf 1,000 with CUPED." in report
    assert "above 10 %: none." in report
    assert "| 1,000 | 50 | 6.5 (6.5 to 6.5) | 6.5 (6.5 to 6.5) | 12.5 (12.5 to 12.5) |" in report


def test_a_finished_document_has_no_such_sentence():
    report = tables.report(counts(at_margin=200), DESIGN, "a command", missing=0)
    assert "Unfinished" not in report
    assert "above 5 %: none." in report


def test_concentrated_harm_above_its_limit_stands_beside_the_missed_carriers():
    """Of 50 treated owners none carries harm in 36.4 % of draws; a quarter of those would pass."""
    report = tables.report(counts(at_margin=200, concentrated=800), DESIGN, "a command", missing=0)
    assert "tokens zipf 1,000 20.0 % (9.1 % missed)" in report


def test_a_limit_on_harm_in_few_owners_is_set_for_rates_and_not_for_amounts():
    found = {
        **counts(at_margin=200, concentrated=480),
        **counts(at_margin=200, concentrated=440, metric=Metric.COMPLETION),
    }
    report = tables.report(found, DESIGN, "a command", missing=0)
    assert (
        "is 10 %: 2 cells, from 11.0 to 11.0 %; more than 3 standard errors above: none." in report
    )
    assert "above 10 %: tokens zipf 1,000 12.0 %" in report


def test_every_row_of_a_table_has_as_many_cells_as_its_head():
    report = tables.report(counts(at_margin=200), DESIGN, "a command", missing=0)
    for table in re.findall(r"(?:^\|.*\|$\n?)+", report, re.MULTILINE):
        assert len({line.count("|") for line in table.strip().splitlines()}) == 1
