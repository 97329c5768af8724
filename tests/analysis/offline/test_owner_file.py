"""Owner file: durations at any scale or between explicit bounds, checks of columns, and notes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from guardwave.analysis.offline.columns import Arms, read_columns
from guardwave.analysis.offline.owner_file import analyse, to_wire
from guardwave.reducer.vocabulary import Gate, Metric, Verdict
from tests.support.frames.samples import ENFORCE_MARGINS, NO_MINIMUM, REFERENCES

ARMS = Arms("enforce", "warn")
POLICY = replace(
    NO_MINIMUM,
    margins={Gate.ENFORCE: {**ENFORCE_MARGINS, Metric.LATENCY_P95: 1.10}},
)


def file_of(**columns: Any) -> pd.DataFrame:
    """Return a reference file as texts, with columns added, replaced or, for None, left out."""
    table = pd.read_csv(REFERENCES / "dev-1-lognormal-aa.csv", dtype=str, keep_default_na=False)
    for name, column in columns.items():
        table = table.drop(columns=name) if column is None else table.assign(**{name: column})
    return table


def latency(file: pd.DataFrame):
    wire = to_wire(analyse(file, ARMS, POLICY))["metrics"]
    assert isinstance(wire, dict)
    return wire["latency_p95"]


def finer(histogram: str) -> str:
    """Return a histogram one scale finer, everything in the lower half of its bucket."""
    pairs = [pair.split(":") for pair in histogram.split()]
    return " ".join(f"{2 * int(bucket)}:{count}" for bucket, count in pairs)


def test_files_of_mixed_scales_are_merged_to_the_coarsest():
    table = file_of()
    is_even = np.arange(len(table)) % 2 == 0
    mixed = file_of(
        latency_scale=np.where(is_even, "3", "4"),
        latency_hist=[
            text if even else finer(text)
            for even, text in zip(is_even, table["latency_hist"], strict=True)
        ],
    )
    assert latency(mixed) == latency(table)
    assert latency(mixed)["cut"]["scale"] == 3


def test_coarse_buckets_are_named_in_the_sentence():
    assert "scale 5 or finer is asked for" in latency(file_of())["sentence"]


def explicit(bounds: list[float]) -> pd.DataFrame:
    """Return the reference file with its durations counted between bounds in ms."""
    table = file_of()
    edges = " ".join(f"{bound:g}" for bound in bounds)
    written = []
    for text in table["latency_hist"]:
        counts = np.zeros(len(bounds) + 1, dtype=int)
        for pair in text.split():
            bucket, count = pair.split(":")
            upper = 2.0 ** ((int(bucket) + 1) / 8)
            counts[int(np.searchsorted(bounds, upper))] += int(count)
        written.append(" ".join(f"{at}:{count}" for at, count in enumerate(counts) if count))
    return file_of(latency_scale=None, latency_bounds=edges, latency_hist=written)


def test_explicit_buckets_test_the_margin_that_their_bounds_allow():
    bounds = [round(1000 * 1.05**step, 6) for step in range(80)]
    found = latency(explicit(bounds))
    assert found["cut"]["scale"] is None
    assert 1.0 < found["tested_margin"] <= 1.10 * (1 + 1e-9)
    assert found["p_harm_at_margin"] is not None


def test_the_first_bound_may_be_0_as_in_the_defaults_of_opentelemetry():
    bounds = [0.0, *(round(1000 * 1.05**step, 6) for step in range(80))]
    assert (
        latency(explicit(bounds))["tested_margin"] == latency(explicit(bounds[1:]))["tested_margin"]
    )


def test_explicit_buckets_too_wide_for_the_margin_are_no_data():
    found = latency(explicit([1000, 10_000, 100_000]))
    assert (found["verdict"], found["reason"]) == ("no_data", "buckets_too_wide")
    assert found["p_harm_at_margin"] is None


def test_a_file_without_durations_leaves_latency_without_data():
    result = analyse(file_of(latency_scale=None, latency_hist=None), ARMS, POLICY)
    assert result.verdict in {Verdict.NO_DATA, Verdict.BEYOND}
    (found,) = [metric for metric in result.metrics if metric.figures.metric is Metric.LATENCY_P95]
    assert (found.verdict, found.reason) == (Verdict.NO_DATA, "no_durations")


def test_cancelled_prompts_are_in_no_failure():
    table = file_of()
    without = analyse(table, ARMS, POLICY).metrics[0].figures
    prompts = table["prompts"].astype(int)
    more = file_of(prompts=(prompts + 3).astype(str), cancelled="3")
    with_some = analyse(more, ARMS, POLICY).metrics[0].figures
    assert with_some.treated.value == without.treated.value
    assert with_some.estimate == without.estimate


def test_an_owner_without_a_histogram_has_no_durations():
    table = file_of()
    table.loc[3, ["latency_hist", "latency_scale"]] = ""
    durations = read_columns(table, ARMS).durations
    assert durations is not None
    assert table.loc[3, "owner"] not in durations.owners


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        pytest.param({"latency_scale": None}, "'latency_scale' is missing", id="no scale"),
        pytest.param({"latency_hist": None}, "'latency_hist' is missing", id="no histogram"),
        pytest.param({"latency_bounds": "1 2"}, "exclude each other", id="scale and bounds"),
        pytest.param({" turns ": "1"}, "'turns' is there twice", id="twice but for spaces"),
        pytest.param(
            {"latency_scale": None, "latency_bounds": "fast slow"}, "are no bounds", id="words"
        ),
        pytest.param(
            {"latency_scale": None, "latency_bounds": "-5 2"}, "are no bounds", id="below 0"
        ),
        pytest.param(
            {"latency_scale": None, "latency_bounds": "1 2"}, "is no bucket of 2 bounds", id="place"
        ),
        pytest.param(
            {"latency_scale": None, "latency_bounds": "2 1", "latency_hist": ["0:1"] + 179 * [""]},
            "row 0: '2 1' are no bounds",
            id="falling",
        ),
    ],
)
def test_columns_that_do_not_fit_each_other_are_refused(columns, words):
    with pytest.raises(ValueError, match=words):
        read_columns(file_of(**columns), ARMS)


def test_a_file_with_the_names_of_evidence_is_refused_with_the_right_names():
    names = {"arm": "cohort", "prompts": "started", "completions": "completed"}
    words = (
        "columns 'arm', 'prompts', 'completions' are missing; rename 'cohort' to 'arm', 'started' "
        "to 'prompts', 'completed' to 'completions', the names of a file with one row per owner; "
        "the columns are 'owner', 'cohort', 'started', "
    )
    with pytest.raises(ValueError, match=words):
        read_columns(file_of().rename(columns=names), ARMS)


def test_a_file_of_owner_days_is_refused_with_the_remedy_to_sum_them():
    days = pd.concat([file_of(), file_of()], ignore_index=True)
    with pytest.raises(ValueError, match=r"row 180: .* twice; .* one row, its days summed"):
        read_columns(days, ARMS)


def test_bounds_are_the_same_in_every_row():
    table = explicit([1000, 10_000])
    table.loc[5, "latency_bounds"] = "1000 20000"
    with pytest.raises(ValueError, match="row 5: '1000 20000' are not the bounds of the first"):
        read_columns(table, ARMS)


def test_one_arm_is_not_compared_with_itself():
    with pytest.raises(ValueError, match="both arms are 'warn'"):
        read_columns(file_of(), Arms("warn", "warn"))


def notes_of(file: pd.DataFrame) -> dict[str, Any]:
    wire = to_wire(analyse(file, ARMS, POLICY))["notes"]
    assert isinstance(wire, list)
    return {note["topic"]: note for note in wire}


def test_loop_events_of_both_arms_are_per_thousand_prompts():
    table = file_of()
    loops = np.where(table["arm"] == "enforce", 2, 1)
    note = notes_of(file_of(loops=loops.astype(str)))["other_protections"]
    prompts = table["prompts"].astype(int)
    for arm, side, loops_per_prompt in (("enforce", "treated", 2), ("warn", "reference", 1)):
        own = (table["arm"] == arm) & (prompts > 0)
        expected = 1000 * loops_per_prompt * own.sum() / prompts[own].sum()
        assert note["numbers"][f"{side}_per_1000"] == pytest.approx(expected)
        assert f"{expected:.2f}" in note["sentence"]
        assert f" in {arm}" in note["sentence"]


def test_a_file_without_loop_events_does_not_claim_that_there_were_none():
    note = notes_of(file_of())["other_protections"]
    assert note["numbers"] == {}
    assert note["sentence"] == (
        "Loop events of other protections are unknown: the file has no column loops."
    )


def test_loop_events_decide_nothing_about_a_file():
    plain, with_loops = (
        analyse(table, ARMS, POLICY) for table in (file_of(), file_of(loops=file_of()["prompts"]))
    )
    assert with_loops.metrics == plain.metrics
    assert (with_loops.verdict, with_loops.sentence) == (plain.verdict, plain.sentence)


def test_a_note_states_what_a_draw_of_the_arms_can_miss():
    table = file_of()
    numbers = notes_of(table)["unseen_owners"]["numbers"]
    assert numbers["owners"] == len(table)
    assert numbers["treated"] == (table["arm"] == "enforce").sum()
    assert 0.0 < numbers["chance_unseen"] < 1.0


@pytest.mark.parametrize("cell", ["-1", "1.5", "", "many"])
def test_loop_events_that_are_no_count_are_refused(cell):
    table = file_of(loops="1")
    table.loc[3, "loops"] = cell
    with pytest.raises(ValueError, match=f"column 'loops', row 3: '{cell}' is no count"):
        read_columns(table, ARMS)
