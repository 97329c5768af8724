"""`guardwave analyze`: the reference datasets, and files that are wrong."""

import json
import math
import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from guardwave.control_plane.cli import main
from tests.support.frames.samples import DATASETS, REFERENCES, reference_values

NAMES = {
    "completion": "completions",
    "disruption": "disconnects",
    "tokens": "tokens",
    "turns": "turns",
}
PERMUTATIONS = 1999
SIDES = (("treated", "enforce"), ("control", "warn"))
FILE = REFERENCES / "dev-1-lognormal-aa.csv"


def run(*words: str):
    return CliRunner().invoke(main, ["analyze", *words])


@cache
def answer(dataset: str, *words: str):
    found = run(str(REFERENCES / f"{dataset}.csv"), "-o", "json", *words)
    assert found.exit_code in {0, 3, 4, 6, 9}, found.output
    return json.loads(found.stdout, parse_constant=pytest.fail)


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("metric", NAMES)
def test_a_reference_dataset_gives_what_its_peers_computed(dataset, metric):
    found = answer(dataset, "--no-cuped")["metrics"][metric]
    known = reference_values(dataset)["metrics"][NAMES[metric]]
    (bound,) = [known[name] for name in known if name.startswith("one_sided_t")] or [None]
    (freedom,) = [known[name] for name in known if name.startswith("satterthwaite")] or [None]
    assert found["control"] == pytest.approx(known["ratio"]["warn"], rel=1e-10)
    assert found["treated"] == pytest.approx(known["ratio"]["enforce"], rel=1e-10)
    assert found["margin"] == known["margin"]
    assert found["cuped"] is None
    # Peers take CR1 over the owners of both arms together, and ours is each arm's own.
    for name, value in known["se_diff"].items():
        (correction,) = re.findall(r"crv?([0-3])", name)
        if correction == "1":
            continue
        assert found["se"][f"cr{correction}"] == pytest.approx(value, rel=1e-10)
    if known["kind"] == "diff":
        assert found["estimate"] == pytest.approx(known["difference"], rel=1e-10)
        assert found["cr2_bound"] == pytest.approx(bound, rel=1e-8)
        assert found["df"] == pytest.approx(freedom, rel=1e-8)
    else:
        logarithm = known["log_ratio"]
        assert found["difference"] == pytest.approx(known["difference"], rel=1e-10)
        assert found["log_ratio"] == pytest.approx(logarithm, rel=1e-10)
        assert math.log(found["estimate"]) == pytest.approx(logarithm["estimate"], rel=1e-10)


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("metric", NAMES)
def test_the_p_value_lies_inside_the_stated_tolerance(dataset, metric):
    found = answer(dataset, "--no-cuped")["metrics"][metric]["p_harm_at_margin"]
    known = reference_values(dataset)["metrics"][NAMES[metric]]["rerandomisation_p_harm_at_margin"]
    p = known["p"]
    spread = known["sd_between_injections"] ** 2 + known["mc_se_of_mean"] ** 2
    assert abs(found - p) <= 4 * math.sqrt(spread + p * (1 - p) / PERMUTATIONS)


@pytest.mark.parametrize("dataset", DATASETS)
def test_latency_is_cut_where_the_peers_cut_it(dataset):
    found = answer(dataset, "--no-cuped")["metrics"]["latency_p95"]
    known = reference_values(dataset)["latency_p95"]
    pooled = known["pooled_cut"]
    edges = known["p95_upper_edge_ms"]
    assert found["treated"] == pytest.approx(edges["enforce"], rel=1e-12)
    assert found["control"] == pytest.approx(edges["warn"], rel=1e-12)
    assert found["tested_margin"] == pytest.approx(known["tested_margin"], rel=1e-12)
    assert found["cut"]["scale"] == known["scale"]
    contrast = found["cut"]["treated_slow"] - found["cut"]["control_slow"]
    assert contrast == pytest.approx(pooled["contrast"], rel=1e-9)
    assert found["se"]["cr2"] == pytest.approx(pooled["se_cr2[statsmodels WLS HC2]"], rel=1e-10)
    result = pooled["rerandomisation_p_harm_at_margin"]
    p = result["p"]
    tolerance = 4 * math.sqrt(result["mc_se"] ** 2 + p * (1 - p) / PERMUTATIONS)
    assert abs(found["p_harm_at_margin"] - p) <= tolerance


@pytest.mark.parametrize("dataset", DATASETS)
def test_owners_are_counted_as_the_peers_count_them(dataset):
    found = answer(dataset)["owners"]
    known = reference_values(dataset)
    owners = known["owners"]
    assert found == {
        "treated": owners["enforce"],
        "control": owners["warn"],
        "without_prompts": owners["zero_prompt_owners"],
    }
    effective = answer(dataset)["metrics"]["tokens"]["n_eff_treated"]
    assert effective == pytest.approx(known["n_eff"]["enforce"], rel=1e-10)


@pytest.mark.parametrize("words", [(), ("--no-cuped",)])
def test_few_treated_owners_without_an_event_are_not_within(words):
    found = answer("dev-3-few-treated-zero-events", *words)
    assert found["verdict"] != "within"
    assert found["metrics"]["disruption"]["verdict"] != "within"


@pytest.mark.parametrize("words", [(), ("--no-cuped",)])
def test_one_owner_with_most_prompts_is_too_little_data(words):
    found = answer("dev-4-dominant-owner", *words)
    for metric in NAMES:
        each = found["metrics"][metric]
        assert (each["verdict"], each["reason"], each["bound"]) == (
            "unproven",
            "minimum_data",
            None,
        )


def test_the_same_file_in_another_order_gives_the_same_answer(tmp_path):
    table = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    table.sample(frac=1, random_state=3).to_csv(tmp_path / "owners.csv", index=False)
    again = run(str(tmp_path / "owners.csv"), "-o", "json")
    assert answer(FILE.stem) == json.loads(again.stdout)


def test_days_before_the_wave_are_used_by_default():
    with_days = answer(FILE.stem)["metrics"]["tokens"]
    table = pd.read_csv(FILE)
    active = table[table["prompts"] > 0]
    seen = int((active["pre_prompts"] > 0).sum())
    assert with_days["cuped"]["owners_with_baseline"] == seen
    assert with_days["cuped"]["owners_new"] == len(active) - seen
    assert 0 < with_days["cuped"]["variance_ratio"] < 1
    low, high = with_days["cuped"]["interval"]
    assert low < with_days["cuped"]["estimate"] < high == with_days["cuped"]["cr2_bound"]
    without = answer(FILE.stem, "--no-cuped")["metrics"]["tokens"]
    assert (without["cuped"], without["estimate"]) == (None, with_days["estimate"])


def test_a_margin_and_alpha_of_ones_own_are_used():
    loose = answer(FILE.stem, "--margin", "completion=0.2", "--margin", "disruption=0.2")
    assert loose["metrics"]["completion"]["margin"] == -0.2
    assert loose["metrics"]["completion"]["verdict"] == "within"
    assert loose["metrics"]["turns"]["margin"] == 1.1
    strict = answer(FILE.stem, "--margin", "completion=0.2", "--alpha", "0.0006")
    assert (
        strict["metrics"]["completion"]["cr2_bound"] < loose["metrics"]["completion"]["cr2_bound"]
    )


def test_arms_may_have_other_names(tmp_path):
    table = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    table["arm"] = table["arm"].map({"enforce": "b", "warn": "a"})
    table.to_csv(tmp_path / "owners.csv", index=False)
    words = ("--treated", "b", "--control", "a", "-o", "json")
    found = json.loads(run(str(tmp_path / "owners.csv"), *words).stdout)["metrics"]
    known = answer(FILE.stem)["metrics"]
    for metric, result in found.items():
        assert {**result, "sentence": ""} == {**known[metric], "sentence": ""}


def test_sentences_use_the_names_of_the_arms():
    forth = answer(FILE.stem)["metrics"]["completion"]
    back = answer(FILE.stem, "--treated", "warn", "--control", "enforce")["metrics"]["completion"]
    enforce, warn = (f"{100 * forth[side]:.2f} % {arm}" for side, arm in SIDES)
    assert f"completion {enforce} v {warn}, difference" in forth["sentence"]
    assert f"completion {warn} v {enforce}, difference" in back["sentence"]


def test_too_little_data_is_reported_with_the_name_of_the_arm(tmp_path):
    table = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    table["arm"] = table["arm"].map({"enforce": "blue", "warn": "green"})
    few = pd.concat([table[table["arm"] == "blue"].head(9), table[table["arm"] == "green"]])
    few.to_csv(tmp_path / "owners.csv", index=False)
    words = ("--treated", "blue", "--control", "green")
    found = run(str(tmp_path / "owners.csv"), *words).stdout
    assert "owners with data in blue (30 needed)" in found
    assert "enforced" not in found


def test_swapped_arms_flip_the_sign():
    there = answer(FILE.stem)["metrics"]["completion"]["estimate"]
    back = answer(FILE.stem, "--treated", "warn", "--control", "enforce")
    assert back["metrics"]["completion"]["estimate"] == pytest.approx(-there, rel=1e-12)


def test_the_table_has_a_sentence_for_every_verdict():
    found = run(str(FILE), "--no-cuped")
    assert "unproven (margin_not_excluded)" in found.stdout
    assert "Not proven: completion 91.98 %" in found.stdout
    assert found.stdout.splitlines()[-1].startswith(("unproven: ", "no_data: "))


def test_arms_that_lost_owners_differently_are_not_valid(tmp_path):
    table = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    lost = table["arm"].eq("enforce") & (table.index % 2 == 0)
    counts = [name for name in table.columns if name in {"prompts", *NAMES.values()}]
    table.loc[lost, counts] = "0"
    table.loc[lost, "latency_hist"] = ""
    table.to_csv(tmp_path / "owners.csv", index=False)
    found = run(str(tmp_path / "owners.csv"), "-o", "json")
    assert found.exit_code == 9
    assert json.loads(found.stdout)["reason"] == "balance"


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        pytest.param("prompts", "-1", "column 'prompts', row 3: '-1' is no count", id="negative"),
        pytest.param("tokens", "nan", "column 'tokens', row 3: 'nan' is no count", id="NaN"),
        pytest.param("tokens", "inf", "column 'tokens', row 3: 'inf' is no count", id="infinity"),
        pytest.param("turns", "1.5", "column 'turns', row 3: '1.5' is no count", id="fraction"),
        pytest.param("turns", "", "column 'turns', row 3: '' is no count", id="empty"),
        pytest.param("completions", "99", "row 3: '99' exceeds prompts", id="more completed"),
        pytest.param("disconnects", "99", "row 3: '99' exceeds prompts", id="more disrupted"),
        pytest.param("pre_completions", "99", "'99' exceeds pre_prompts", id="before the wave"),
        pytest.param("arm", "other", "row 3: 'other' is neither 'enforce' nor 'warn'", id="arm"),
        pytest.param("owner", "", "column 'owner', row 3: '' is no owner", id="unnamed owner"),
        pytest.param("owner", "o00000", "'o00000' is there twice", id="owner twice"),
        pytest.param("latency_hist", "75", "row 3: '75' is no bucket:count", id="no histogram"),
        pytest.param("latency_hist", "7:99", "row 3: '7:99' counts more", id="more durations"),
        pytest.param("latency_scale", "99", "row 3: '99' is no scale", id="scale"),
    ],
)
def test_a_wrong_cell_is_named_with_its_line(tmp_path, column, value, words):
    table = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    table.loc[1, column] = value
    table.to_csv(tmp_path / "owners.csv", index=False)
    found = run(str(tmp_path / "owners.csv"))
    assert found.exit_code == 1
    assert words in found.stderr
    assert "Traceback" not in found.output


def test_an_owner_may_be_called_na(tmp_path):
    table = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    table.loc[0, "owner"] = "NA"
    table.to_csv(tmp_path / "owners.csv", index=False)
    assert run(str(tmp_path / "owners.csv")).exit_code in {3, 6}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", "no CSV file with a header line", id="empty file"),
        pytest.param("owner,arm\no,warn,3\n", "more cells than its header", id="no name"),
        pytest.param("owner,arm\no,warn\n", "columns 'prompts', 'comp", id="columns missing"),
        pytest.param("owner\no\n", "its header has one column, 'owner'", id="one column"),
        pytest.param("owner:arm\no:warn\n", "with the separator ','", id="other separator"),
        pytest.param('owner,arm\n"o,warn\n', "no CSV file", id="open quote"),
    ],
)
def test_a_file_of_another_shape_is_refused(tmp_path: Path, text, words):
    file = tmp_path / "owners.csv"
    file.write_text(text)
    found = run(str(file))
    assert found.exit_code == 1
    assert words in found.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(("--margin", "speed=1"), "'speed' is none of completion", id="metric"),
        pytest.param(("--margin", "tokens=0.9"), "a ratio above 1", id="ratio below one"),
        pytest.param(("--margin", "completion=1"), "between 0 and 1", id="whole"),
        pytest.param(("--margin", "completion"), "'' is no margin", id="no value"),
        pytest.param(("--alpha", "0.7"), "0.7 is not in the range", id="alpha"),
        pytest.param(("--alpha", "nan"), "'nan' is no number", id="alpha of no number"),
    ],
)
def test_a_wrong_option_is_wrong_usage(words, message):
    found = run(str(FILE), *words)
    assert found.exit_code == 2
    assert message in found.stderr


def test_one_arm_alone_is_no_data(tmp_path):
    table = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    table[table["arm"] == "warn"].to_csv(tmp_path / "owners.csv", index=False)
    found = run(str(tmp_path / "owners.csv"), "-o", "json")
    assert found.exit_code == 6
    metrics = json.loads(found.stdout)["metrics"]
    assert metrics["completion"]["reason"] == "empty_cohort"
    assert metrics["completion"]["treated"] is None


def test_the_table_ends_with_what_is_for_information_and_the_verdict():
    lines = run(str(FILE)).stdout.splitlines()
    unseen, loops = (line for line in lines if line.startswith("information: "))
    assert "carried all harm" in unseen
    assert loops.endswith("are unknown: the file has no column loops.")
    assert lines.index(loops) == len(lines) - 2
