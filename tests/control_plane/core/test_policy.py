import os
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from guardwave.control_plane.core.errors import SettingsError
from guardwave.control_plane.core.policy import load, parse
from guardwave.control_plane.rollouts.context import open_context
from guardwave.reducer.vocabulary import Gate, Metric
from tests.end_to_end.serving import Served
from tests.support.web_workers import PATIENCE_S

SHIPPED = resources.files("guardwave.control_plane.core").joinpath("policy.toml").read_text("utf-8")


def with_line(line: str) -> str:
    """Return the shipped policy with one line set to another value."""
    key = line.partition(" = ")[0]
    lines = SHIPPED.splitlines()
    places = [at for at, old in enumerate(lines) if old.startswith(f"{key} = ")]
    assert places, f"the shipped policy has no {key}"
    lines[places[-1]] = line
    return "\n".join(lines)


def test_the_shipped_policy_says_what_the_domain_says():
    policies = load(None)
    policy = policies.of("internal")
    assert policy.margins[Gate.ENFORCE][Metric.COMPLETION] == 0.01
    assert policy.margins[Gate.WARN][Metric.CANCELLATION] == 0.005
    assert policy.margins[Gate.SHADOW] == {}
    assert (policy.ceiling_bps, policy.holdback_bps, policy.dwell_days) == (500, 2000, 7)
    assert policy.requires == ()
    assert policies.of("public-cloud").requires == ("internal",)


def test_defaults_are_the_shipped_values():
    margins = SHIPPED[SHIPPED.index("[margins.shadow]") :]
    bare = parse(f'version = "{load(None).base.version}"\n{margins}')
    assert bare.base == load(None).base


def test_the_hash_follows_the_text():
    assert load(None).hash == parse(SHIPPED).hash
    assert load(None).hash != parse(f"{SHIPPED}\n# one more remark").hash


def test_a_file_replaces_the_shipped_policy(tmp_path):
    file = tmp_path / "policy.toml"
    file.write_text(with_line("dwell_days = 14"), encoding="utf-8")
    assert load(file).base.dwell_days == 14


def test_thresholds_may_be_tightened():
    for line in ("owners = 100", "alpha = 0.01", "completion = 0.002", "ceiling_bps = 100"):
        assert parse(with_line(line)).base != load(None).base


def test_the_age_of_an_evaluation_may_be_long():
    assert (
        parse(with_line("evaluation_max_age_hours = 100000")).base.evaluation_max_age_hours == 1e5
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param("owners = 29", "minimum_data.owners = 29.*30", id="fewer owners"),
        pytest.param("effective_owners = 9.9", "effective_owners = 9.9.*10", id="effective owners"),
        pytest.param("largest_owner_share = 0.3", "largest_owner_share = 0.3.*0.25", id="share"),
        pytest.param("expected_harm_events = 1", "expected_harm_events = 1.*10", id="events"),
        pytest.param("alpha = 0.1", "alarms.alpha = 0.1.*0.05", id="alpha of alarms"),
        pytest.param("lowers_enforce = 1", "lowers_enforce = 1.*boolean", id="no boolean"),
        pytest.param("stop_band = 0.01", "stop_band = 0.01.*0.005", id="stop band"),
        pytest.param("planned_power = 1.0", "planned_power = 1.0.*less than 1", id="power"),
        pytest.param("revision_tolerance = nan", "tolerance = nan", id="not a number"),
        pytest.param(
            "stop_band = '0.005'", "stop_band = '0.005'.*number", id="a text for a number"
        ),
        pytest.param("dwell_days = 6", "dwell_days = 6.*7", id="a shorter dwell"),
        pytest.param("dwell_days = 7.5", "dwell_days = 7.5.*integer", id="half a day"),
        pytest.param("dwell_days = true", "dwell_days = True.*integer", id="a boolean"),
        pytest.param("coverage_floor = 0.98", "coverage_floor = 0.98.*0.99", id="coverage"),
        pytest.param("contract_floor = 1.01", "contract_floor = 1.01.*1", id="contract"),
        pytest.param("revision_tolerance = 0.01", "revision_tolerance = 0.01", id="revisions"),
        pytest.param("ceiling_bps = 501", "ceiling_bps = 501.*500", id="ceiling"),
        pytest.param("holdback_bps = -1", "holdback_bps = -1.*0", id="holdback"),
        pytest.param("permutations = 99", "permutations = 99.*999", id="permutations"),
        pytest.param(
            "evaluation_max_age_hours = 0", "evaluation_max_age_hours = 0.*1", id="no age"
        ),
        pytest.param("version = ''", "version = ''", id="no version"),
        pytest.param("completion = 0.02", "enforce.completion is 0.02.*0.01", id="wider margin"),
        pytest.param("completion = 0", "enforce.completion is 0.*above 0", id="no margin"),
        pytest.param("tokens = 1.0", "enforce.tokens is 1.0.*above 1.0", id="ratio of 1"),
        pytest.param("turns = inf", "enforce.turns = inf", id="an infinite margin"),
        pytest.param("requires = ['../x']", "requires.0 = '../x'", id="no environment's name"),
        pytest.param("requires = 'internal'", "requires = 'internal'", id="a text for a list"),
    ],
)
def test_a_wrong_value_is_named_with_field_value_and_what_is_allowed(line, words):
    with pytest.raises(SettingsError, match=rf"GUARDWAVE_POLICY=.*{words}"):
        parse(with_line(line))


@pytest.mark.parametrize(
    ("requires", "words"),
    [
        pytest.param({"a": "a"}, "a requires a: no step could be the first", id="itself"),
        pytest.param(
            {"a": "b", "b": "c", "c": "a"},
            "a requires b requires c requires a|b requires c requires a requires b"
            "|c requires a requires b requires c",
            id="three in a circle",
        ),
    ],
)
def test_environments_that_wait_for_each_other_are_refused(requires, words):
    tables = "".join(
        f"[environments.{name}]\nrequires = ['{other}']\n" for name, other in requires.items()
    )
    with pytest.raises(SettingsError, match=words):
        parse(f"{SHIPPED}\n{tables}")


def test_alpha_of_the_gates_may_not_be_loosened():
    with pytest.raises(SettingsError, match=r"GUARDWAVE_POLICY='alpha = 0.1'.*0.05"):
        parse(SHIPPED.replace("alpha = 0.05", "alpha = 0.1", 1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(f"margin = 1\n{SHIPPED}", "margin.*remove it", id="an unknown key"),
        pytest.param(
            SHIPPED.replace("owners = 30", "owner = 30"), "minimum_data.owner.*remove", id="a typo"
        ),
        pytest.param(SHIPPED.replace('version = "', '# "'), "version.*add it", id="no version"),
        pytest.param(
            SHIPPED.replace("completion = 0.01", ""),
            "the enforce gate needs a margin for completion",
            id="a metric left out",
        ),
        pytest.param(
            SHIPPED.replace("[margins.warn]", "[margins.shade]"), "margins.shade", id="no such gate"
        ),
        pytest.param(SHIPPED.replace("turns =", "laps ="), "margins.*laps", id="no such metric"),
        pytest.param("version = ", "mend its TOML", id="not TOML"),
    ],
)
def test_a_policy_with_a_wrong_shape_says_what_to_mend(text, words):
    with pytest.raises(SettingsError, match=words):
        parse(text)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"missing\.toml.*No such file"):
        load(tmp_path / "missing.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match=r"binary\.toml.*UTF-8"):
        load(binary)


@pytest.fixture
def unreadable(tmp_path: Path) -> Path:
    """A policy file with a ceiling that no policy may have."""
    path = tmp_path / "policy.toml"
    path.write_text(with_line("ceiling_bps = 9000"))
    return path


def test_no_process_begins_with_a_policy_that_it_cannot_read(settings, store, unreadable):
    with pytest.raises(SettingsError, match=r"ceiling_bps = 9000.*less than or equal to 500"):
        open_context(replace(settings, policy_path=unreadable), store)


def test_a_process_keeps_the_policy_that_it_began_with(settings, store, tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(SHIPPED)
    context = open_context(replace(settings, policy_path=path), store)
    path.write_text("no policy any more")
    assert context.policies.of("internal").ceiling_bps == 500


def test_serve_refuses_to_start_on_an_unreadable_policy_and_leaves_nothing(unreadable):
    with tempfile.TemporaryDirectory(prefix="gw-") as directory:
        mine = {"GUARDWAVE_DATA": directory, "GUARDWAVE_POLICY": str(unreadable)}
        theirs = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
        ended = subprocess.run(
            [sys.executable, "-m", "guardwave.control_plane.cli", "serve"],
            env={**theirs, **mine},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        left = Served(Path(directory)).processes()
    assert (ended.returncode, ended.stdout, left) == (1, "", ())
    (line,) = ended.stderr.splitlines()
    assert line.startswith("guardwave: GUARDWAVE_POLICY=")
    assert "ceiling_bps = 9000" in line


def test_every_field_of_the_shipped_file_is_used():
    written = set(tomllib.loads(SHIPPED)) - {"environments", "margins", "minimum_data"}
    assert all(hasattr(load(None).base, name) for name in written)
