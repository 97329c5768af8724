"""Evidence bundles: reading one over HTTP, and `guardwave replay` against a running server."""

import gzip
import json

import pytest
from click.testing import CliRunner

from guardwave.control_plane.cli import main
from guardwave.control_plane.jobs.worker import Worker
from guardwave.reducer.vocabulary import Role
from tests.control_plane.http.conftest import ENVIRONMENT, GUARD, assert_problem


@pytest.fixture
def done(context, operator, rollout):
    """The address of an evaluation that the worker made."""
    asked = operator.post(f"{rollout}/gate-evaluations", {"gate": "shadow"}, Idempotency_Key="k")
    worker = Worker(context, holder="worker of the test")
    while worker.run_once():
        pass
    return asked.headers["Location"]


@pytest.fixture
def run(address, viewer, monkeypatch):
    monkeypatch.setenv("GUARDWAVE_URL", address)
    monkeypatch.setenv("GUARDWAVE_TOKEN", str(viewer.token))
    return lambda *words: CliRunner().invoke(main, ["replay", *words])


NAME = f"{ENVIRONMENT}/{GUARD}/1"


def test_the_evaluation_links_to_its_bundle(viewer, done):
    found = viewer.get(done).get_json()
    bundle = viewer.get(found["links"]["bundle"])
    assert bundle.status_code == 200
    assert bundle.mimetype == "application/json"
    assert (bundle.get_json()["evaluation"], bundle.get_json()["digest"]) == (1, found["digest"])
    assert json.loads(bundle.get_json()["result"]) == found["result"]


def test_a_client_that_takes_gzip_gets_the_same_compressed(viewer, done):
    plain = viewer.get(f"{done}/bundle")
    packed = viewer.get(f"{done}/bundle", Accept_Encoding="gzip")
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert {plain.headers["Vary"], packed.headers["Vary"]} == {"Accept-Encoding"}


def test_an_evaluation_without_a_verdict_has_no_bundle(operator, rollout):
    asked = operator.post(f"{rollout}/gate-evaluations", {"gate": "shadow"}, Idempotency_Key="k")
    assert "bundle" not in asked.get_json()["links"]
    problem = assert_problem(operator.get(f"{asked.headers['Location']}/bundle"), 404, "not-found")
    assert "came to a verdict" in problem["detail"]
    assert_problem(operator.get(f"{rollout}/gate-evaluations/9/bundle"), 404, "not-found")


def test_a_token_of_another_environment_reads_no_bundle(as_role, done):
    stranger = as_role(Role.VIEWER, "public-cloud")
    assert_problem(stranger.get(f"{done}/bundle"), 403, "forbidden")


def test_replay_from_the_server_ends_with_zero(run, done):
    found = run(NAME)
    assert (found.exit_code, found.stderr.count("fetching")) == (0, 1)
    assert f"evaluation 1 of {GUARD} in {ENVIRONMENT}: the same, byte by byte" in found.stdout


def test_replay_from_a_saved_file_needs_no_server(run, done, tmp_path, monkeypatch):
    file = tmp_path / "bundle.json"
    assert run(NAME, "--save", str(file)).exit_code == 0
    monkeypatch.delenv("GUARDWAVE_TOKEN")
    monkeypatch.setenv("GUARDWAVE_URL", "http://127.0.0.1:9")
    found = run(str(file), "-o", "json")
    assert found.exit_code == 0
    answer = json.loads(found.stdout)
    assert (answer["same"], answer["difference"]) == (True, None)
    assert answer["digest"] == answer["recorded_digest"]


def test_replay_of_an_edited_file_ends_with_one_and_the_first_difference(run, done, tmp_path):
    file = tmp_path / "bundle.json"
    run(NAME, "--save", str(file))
    file.write_bytes(file.read_bytes().replace(b'"dwell_days":7', b'"dwell_days":8', 1))
    found = run(str(file))
    assert found.exit_code == 1
    assert "not the same; checks[dwell]." in found.stdout


@pytest.mark.parametrize(
    ("words", "exit_code", "message"),
    [
        pytest.param(["nothing"], 2, "neither a file nor ENVIRONMENT/GUARD/NUMBER", id="no name"),
        pytest.param([f"{ENVIRONMENT}/{GUARD}/9"], 1, "404 Not found", id="no evaluation"),
        pytest.param([NAME, "--url", "ftp://x"], 2, "starts with http", id="no address"),
        pytest.param([NAME, "--url", "http://[bad"], 2, "give an address such as", id="no host"),
        pytest.param(
            [NAME, "--url", "http://127.0.0.1:9"],
            1,
            "no server answers at http://127.0.0.1:9 (Connection refused); start one with "
            "`guardwave serve`, or set GUARDWAVE_URL",
            id="no server",
        ),
    ],
)
def test_a_bundle_that_cannot_be_replayed_is_reported(run, done, words, exit_code, message):
    found = run(*words)
    assert found.exit_code == exit_code
    assert message in found.stderr


def test_replay_names_the_variable_that_lacks_the_token(run, monkeypatch):
    monkeypatch.delenv("GUARDWAVE_TOKEN")
    found = run(NAME)
    assert (found.exit_code, "GUARDWAVE_TOKEN is not set" in found.stderr) == (2, True)
    assert f"$(guardwave token create --role viewer --environment {ENVIRONMENT})`" in found.stderr


def test_a_file_that_is_no_bundle_is_refused(run, tmp_path):
    file = tmp_path / "bundle.json"
    file.write_text("{}")
    found = run(str(file))
    assert found.exit_code == 1
    assert "no evidence bundle" in found.stderr
