"""Owner files of `guardwave analyze`: other separators, columns and very large numbers."""

import gzip
import json
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from guardwave.control_plane.cli import main
from tests.support.frames.samples import REFERENCES

FILE = REFERENCES / "dev-1-lognormal-aa.csv"


def run(*words: str):
    return CliRunner().invoke(main, ["analyze", *words])


@cache
def known_answer(*words: str):
    return json.loads(run(str(FILE), "-o", "json", *words).stdout)


def changed_copy(tmp_path: Path, change) -> str:
    """Return the path of a copy of the reference file, its text changed."""
    file = tmp_path / "owners.csv"
    file.write_bytes(change(FILE.read_text()).encode())
    return str(file)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text.replace(",", ";"), id="semicolons"),
        pytest.param(lambda text: text.replace(",", "\t"), id="tabs"),
        pytest.param(lambda text: "\ufeff" + text, id="byte order mark"),
        pytest.param(lambda text: text.replace("\n", "\r\n"), id="Windows lines"),
        pytest.param(lambda text: text.replace("\n", "\n\n"), id="blank lines"),
        pytest.param(lambda text: text.replace(",", ", "), id="spaces"),
        pytest.param(
            lambda text: "\n".join(f"{at},{line}" for at, line in enumerate(text.splitlines())),
            id="an index with a number for a name",
        ),
        pytest.param(
            lambda text: "\n".join(
                f"{at or ''},{line}" for at, line in enumerate(text.splitlines())
            ),
            id="an index that pandas wrote",
        ),
        pytest.param(
            lambda text: "\n".join(
                f"{line},{'tenant' if at == 0 else 'team 7'}"
                for at, line in enumerate(text.splitlines())
            ),
            id="a column of somebody else",
        ),
    ],
)
def test_the_same_owners_written_otherwise_give_the_same_answer(tmp_path, change):
    found = json.loads(run(changed_copy(tmp_path, change), "-o", "json").stdout)
    assert {**found, "remarks": []} == {**known_answer(), "remarks": []}


def test_a_column_that_is_not_known_is_passed_over_with_a_word(tmp_path):
    table = pd.read_csv(FILE, dtype=str, keep_default_na=False).assign(tenant="t", region="eu")
    table.to_csv(tmp_path / "owners.csv", index=False)
    found = run(str(tmp_path / "owners.csv"), "-o", "json")
    assert "columns 'tenant', 'region' passed over: not known" in found.stderr
    assert json.loads(found.stdout)["metrics"] == known_answer()["metrics"]


@pytest.mark.parametrize(
    ("written_as", "meant"),
    [
        pytest.param("canceled", "cancelled", id="American"),
        pytest.param("Pre_Prompts", "pre_prompts", id="capitals"),
        pytest.param("turn", "turns", id="one letter"),
        pytest.param("latency_hists", "latency_hist", id="one letter more"),
    ],
)
def test_a_slip_of_a_known_column_is_refused_with_the_one_it_looks_like(
    tmp_path, written_as, meant
):
    table = pd.read_csv(FILE, dtype=str, keep_default_na=False).assign(**{written_as: "0"})
    table.to_csv(tmp_path / "owners.csv", index=False)
    found = run(str(tmp_path / "owners.csv"))
    assert found.exit_code == 1
    assert f"column {written_as!r} is not known and looks like {meant!r}" in found.stderr


def test_a_part_of_the_days_before_is_left_out_and_reported(tmp_path):
    table = pd.read_csv(FILE, dtype=str, keep_default_na=False).drop(columns="pre_tokens")
    table.to_csv(tmp_path / "owners.csv", index=False)
    found = run(str(tmp_path / "owners.csv"), "-o", "json")
    assert "without pre_tokens nothing is adjusted by the days before" in found.stderr
    result = json.loads(found.stdout)
    assert result["metrics"] == known_answer("--no-cuped")["metrics"]
    assert len(result["remarks"]) == 1


def test_arms_that_nobody_named_are_listed(tmp_path):
    table = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    table["arm"] = table["arm"].map({"enforce": "b", "warn": "a"})
    table.to_csv(tmp_path / "owners.csv", index=False)
    found = run(str(tmp_path / "owners.csv"))
    assert "the arms of the file are 'a', 'b', name the two to compare" in found.stderr


def test_a_file_that_is_not_utf_8_is_refused_by_its_line(tmp_path):
    file = tmp_path / "owners.csv"
    file.write_bytes(FILE.read_bytes().replace(b"o00001", b"caf\xe9"))
    found = run(str(file))
    assert found.exit_code == 1
    assert "line 3 holds the byte 0xe9, which is not UTF-8" in found.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(gzip.compress, "compressed by gzip; unpack it", id="gzip"),
        pytest.param(lambda data: b"PK\x03\x04" + data, "a spreadsheet; save", id="a spreadsheet"),
        pytest.param(lambda data: b"PAR1" + data, "a Parquet file; write its rows", id="Parquet"),
        pytest.param(
            lambda data: data.replace(b"tokens,", b"tokens,tokens,", 1),
            "column 'tokens' is there 2 times; keep one of them",
            id="a column twice",
        ),
        pytest.param(
            lambda data: data.replace(b"tokens,", b'tokens," tokens ",', 1),
            "column 'tokens' is there 2 times; keep one of them",
            id="a column twice, once with spaces",
        ),
        pytest.param(
            lambda data: b'"' + data * 6, "its header line cannot be read", id="an open quote"
        ),
        pytest.param(lambda _: b"", "No columns to parse", id="an empty file"),
    ],
)
def test_a_file_that_is_no_table_of_owners_is_rejected_with_the_reason(tmp_path, change, message):
    file = tmp_path / "owners.csv"
    file.write_bytes(change(FILE.read_bytes()))
    found = run(str(file))
    assert (found.exit_code, found.stdout) == (1, "")
    assert message in found.stderr


@pytest.mark.parametrize(
    ("histogram", "scale"),
    [
        pytest.param("999999999:1", "3", id="longer than a float holds"),
        pytest.param("-999999999:1", "3", id="shorter than a float holds"),
        pytest.param("1:1", "-10", id="a scale that makes it so"),
    ],
)
def test_a_bucket_that_no_duration_has_is_named_with_its_line(tmp_path, histogram, scale):
    table = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    table.loc[1, ["latency_hist", "latency_scale"]] = histogram, scale
    table.to_csv(tmp_path / "owners.csv", index=False)
    found = run(str(tmp_path / "owners.csv"))
    assert found.exit_code == 1
    assert f"column 'latency_hist', row 3: {histogram!r} has a bucket" in found.stderr


def test_a_bucket_far_from_all_others_is_named_with_its_line(tmp_path):
    table = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    has_any = table["latency_hist"] != ""
    table.loc[has_any, ["latency_hist", "latency_scale"]] = "0:1", "20"
    table.loc[1, "latency_hist"] = "900000000:1"
    table.to_csv(tmp_path / "owners.csv", index=False)
    found = run(str(tmp_path / "owners.csv"))
    assert found.exit_code == 1
    assert "row 3: '900000000:1' has a bucket more than 524,288 buckets away" in found.stderr


def test_counts_as_large_as_a_float_holds_end_in_words(tmp_path):
    table = pd.read_csv(FILE, dtype=str, keep_default_na=False)
    table.loc[1, "prompts"] = str(2**53 - 2)
    table.to_csv(tmp_path / "owners.csv", index=False)
    found = run(str(tmp_path / "owners.csv"), "-o", "json")
    assert found.exit_code in {1, 3, 6}
    assert found.exception is None or isinstance(found.exception, SystemExit)
