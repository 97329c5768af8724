"""Plans: over HTTP, and by `guardwave plan` against a running server."""

import json
import re
import shlex
import threading
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from guardwave.control_plane.cli import main
from guardwave.control_plane.jobs.worker import Worker
from guardwave.reducer.vocabulary import Role
from tests.control_plane.http.conftest import ENVIRONMENT, GUARD, REASON, assert_problem
from tests.support.lives import Life


@contextmanager
def running_worker(context):
    """Let a worker work meanwhile."""
    stop = threading.Event()
    thread = threading.Thread(target=Worker(context, holder="worker of the test").run, args=[stop])
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.fixture
def worker(context):
    """A worker that works until the test is over."""
    with running_worker(context):
        yield


def test_a_plan_is_asked_for_and_read_where_location_says(operator, viewer, rollout):
    asked = operator.post(f"{rollout}/plans", {})
    assert asked.status_code == 202
    found = viewer.get(asked.headers["Location"]).get_json()
    assert (found["status"], found["gate"], found["result"]) == ("pending", "warn", None)
    assert found["conditions"][0]["message"] == "The worker has not made it yet."
    assert viewer.get(f"{rollout}/plans").get_json()["items"][0]["id"] == found["id"]


def test_a_key_makes_a_plan_once(operator, rollout):
    first = operator.post(f"{rollout}/plans", {}, Idempotency_Key="k")
    again = operator.post(f"{rollout}/plans", {}, Idempotency_Key="k")
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.get_json() == first.get_json()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        pytest.param({"shares_bps": [0]}, 400, "invalid-field", id="a share of nothing"),
        pytest.param({"days": [91]}, 400, "invalid-field", id="more than ninety days"),
        pytest.param({"placebo_waves": 99}, 400, "invalid-field", id="too few placebo waves"),
        pytest.param({"shares_bps": [500] * 5}, 400, "invalid-field", id="too many shares"),
        pytest.param({"looks": 0}, 400, "invalid-field", id="no look"),
        pytest.param({"looks": 9}, 400, "invalid-field", id="more looks than a wave declares"),
        pytest.param({"reason": REASON}, 400, "invalid-field", id="an unknown member"),
        pytest.param({"shares_bps": [10_000]}, 422, "rule-violated", id="everybody"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(operator, rollout, body, status, code):
    assert_problem(operator.post(f"{rollout}/plans", body), status, code)


def test_a_viewer_asks_for_no_plan(viewer, rollout):
    assert_problem(viewer.post(f"{rollout}/plans", {}), 403, "forbidden")


def test_there_is_no_plan_that_nobody_asked_for(viewer, rollout):
    assert_problem(viewer.get(f"{rollout}/plans/1"), 404, "not-found")


def test_a_plan_honours_if_match(operator, rollout):
    stale = operator.post(f"{rollout}/plans", {}, If_Match='"stale"')
    assert_problem(stale, 412, "precondition-failed")


@pytest.fixture
def run(address, operator, rollout, monkeypatch):
    monkeypatch.setenv("GUARDWAVE_URL", address)
    monkeypatch.setenv("GUARDWAVE_TOKEN", str(operator.token))
    return lambda *words: CliRunner().invoke(main, ["plan", ENVIRONMENT, GUARD, *words])


def test_the_command_reports_why_nothing_can_be_planned(run, worker):
    found = run("--days", "7", "--share-bps", "500")
    assert found.exit_code == 1
    assert "plan 1 is failed: a plan for 7 days rests on as many complete days" in found.stderr


def test_the_command_waits_no_longer_than_its_timeout(run):
    found = run("--timeout", "0")
    assert found.exit_code == 8
    assert "still pending" in found.stderr


def test_a_token_of_another_environment_asks_for_no_plan(run, as_role, monkeypatch):
    monkeypatch.setenv("GUARDWAVE_TOKEN", str(as_role(Role.OPERATOR, "public-cloud").token))
    found = run()
    assert (found.exit_code, found.stdout) == (1, "")
    assert "403 Forbidden" in found.stderr


def test_the_answer_is_json_where_asked_for(run, context, worker, monkeypatch):
    planned = run("-o", "json", "--days", "7")
    assert planned.exit_code == 1
    (kept,) = context.plans.newest(ENVIRONMENT, GUARD, at_most=5)
    assert kept.sentence is not None
    assert json.dumps(kept.sentence)[1:-1] in planned.stderr


def without_token(run, monkeypatch, settings):
    """Take the token away, as from who asks for the first time, and lead to the store."""
    monkeypatch.delenv("GUARDWAVE_TOKEN")
    monkeypatch.delenv("REDIS_URL", raising=False)
    monkeypatch.setenv("GUARDWAVE_DATA", str(settings.data_dir))
    return run()


def test_the_command_that_an_error_names_makes_a_token_that_may_plan(run, monkeypatch, settings):
    found = without_token(run, monkeypatch, settings)
    assert (found.exit_code, found.stdout) == (2, "")
    (command,) = re.findall(r"GUARDWAVE_TOKEN=\$\(guardwave (.+?)\)`", found.stderr)
    token = CliRunner().invoke(main, shlex.split(command))
    assert token.exit_code == 0, token.stderr
    monkeypatch.setenv("GUARDWAVE_TOKEN", token.stdout.strip())
    assert "waiting for" in run("--timeout", "0").stderr


@pytest.mark.parametrize(
    ("role", "status"),
    [
        pytest.param(Role.VIEWER, "403 Forbidden", id="a viewer's token"),
        pytest.param(None, "401 Not signed in", id="a token that nobody made"),
    ],
)
def test_a_token_that_may_not_plan_gets_the_command_that_makes_one(
    run, as_role, monkeypatch, role, status
):
    text = "gw_unknown_token" if role is None else str(as_role(role).token)
    monkeypatch.setenv("GUARDWAVE_TOKEN", text)
    found = run()
    assert (found.exit_code, found.stdout) == (1, "")
    assert status in found.stderr
    assert f"$(guardwave token create --role operator --environment {ENVIRONMENT})`" in found.stderr


@pytest.mark.parametrize(
    "text", [pytest.param("gw_a_b\n", id="a line end"), pytest.param("gw_ä_b", id="no ASCII")]
)
def test_a_token_that_no_header_holds_is_refused_and_not_shown(run, monkeypatch, text):
    monkeypatch.setenv("GUARDWAVE_TOKEN", text)
    found = run()
    assert found.exit_code == 2
    assert "GUARDWAVE_TOKEN has spaces, line ends" in found.stderr
    assert text.strip() not in found.stderr


def test_the_table_names_what_the_power_leaves_out(store, address, operator, monkeypatch):
    life = Life.begin(store)
    life.live(7)
    monkeypatch.setenv("GUARDWAVE_TOKEN", str(operator.token))
    with running_worker(life.context):
        words = [ENVIRONMENT, life.rollout.guard, "--url", address, "--share-bps", "9000"]
        found = CliRunner().invoke(main, ["plan", *words])
    assert found.exit_code == 0, found.stderr
    table, _, remark = found.stdout.partition("\ntokens at 90 % for 7 days: ")
    (row,) = [line for line in table.splitlines() if line.split()[0] == "tokens"]
    assert "lacks data" in table.splitlines()[0]
    assert row.split()[-2:] == ["100", "%"]
    assert remark.startswith(
        "power and owners needed in closed form leave out minimum data, which 100 % of draws lack, "
        "such as 21 owners with data in warned (30 needed)"
    )
