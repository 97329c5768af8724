"""Evidence and volume over HTTP: pages, streams, groups and rights."""

import json
from datetime import timedelta

import pytest

from guardwave.control_plane.core.clock import to_ns
from guardwave.control_plane.data_plane import EXTENSION
from guardwave.control_plane.rollouts.access import create_token
from guardwave.control_plane.server.app import create_app
from guardwave.reducer.vocabulary import Role
from tests.control_plane.http.conftest import Api, assert_problem
from tests.support.counting import DELTA, Interval, metrics
from tests.support.hosts import Prompt, partial_of
from tests.support.lives import Life
from tests.support.otlp.bodies import any_value
from tests.support.worlds import ENVIRONMENT, GUARD, VERSION

ROLLOUT = f"/api/v1/environments/{ENVIRONMENT}/guards/{GUARD}"


@pytest.fixture
def life(store) -> Life:
    return Life.begin(store)


@pytest.fixture
def viewer(life):
    app = create_app(life.context, secure_cookies=False)
    yield Api(app, create_token(life.context, role=Role.VIEWER, environment=ENVIRONMENT))
    app.extensions[EXTENSION].refresher.stop()


@pytest.fixture
def two_days(life: Life) -> Life:
    life.live(2)
    return life


def lines_of(answer):
    assert (answer.status_code, answer.mimetype) == (200, "application/x-ndjson")
    return [json.loads(line) for line in answer.data.splitlines()]


def test_owner_days_are_lines_one_for_each_owner_and_day(viewer, two_days):
    lines = lines_of(viewer.get(f"{ROLLOUT}/evidence"))
    assert len(lines) == 2 * len(two_days.owners)
    assert [line["day"] for line in lines] == sorted(line["day"] for line in lines)
    assert len({(line["day"], line["owner"]) for line in lines}) == len(lines)
    row = two_days.context.evidence.owner_days(
        ENVIRONMENT, GUARD, 1, [two_days.today - timedelta(days=2)]
    )[0]
    (same,) = [line for line in lines if (line["owner"], line["day"]) == (row.owner, str(row.day))]
    assert (same["guard"], same["wave"], same["mode"]) == (GUARD, 1, "shadow")
    assert (same["version"], same["cohort"]) == (VERSION, "everyone")
    assert (same["started"], same["tokens"], same["source"]) == (2, row.tokens, "events")
    assert same["durations"] == [list(pair) for pair in row.durations]


def test_pages_follow_each_other_and_hold_each_owner_day_once(viewer, two_days):
    whole = lines_of(viewer.get(f"{ROLLOUT}/evidence"))
    address, paged, pages = f"{ROLLOUT}/evidence?limit=7", [], 0
    while address:
        answer = viewer.get(address)
        paged += lines_of(answer)
        pages += 1
        link = answer.headers.get("Link", "")
        assert not link or link.endswith('>; rel="next"')
        address = link.removeprefix("<").partition(">")[0]
    assert paged == whole
    assert pages > 3


@pytest.mark.parametrize(
    ("query", "days"),
    [
        pytest.param("from={last}", 1, id="from a day on"),
        pytest.param("to={first}", 1, id="up to a day"),
        pytest.param("from={first}&to={last}&wave=1&cohort=everyone", 2, id="all that there is"),
        pytest.param("wave=2", 0, id="another wave"),
        pytest.param("cohort=enforced", 0, id="another cohort"),
        pytest.param("from=0001-01-01&to=0001-01-02", 0, id="days without any"),
    ],
)
def test_days_wave_and_cohort_choose(viewer, two_days, query, days):
    first, last = (two_days.today - timedelta(days=back) for back in (2, 1))
    lines = lines_of(viewer.get(f"{ROLLOUT}/evidence?{query.format(first=first, last=last)}"))
    assert len(lines) == days * len(two_days.owners)


@pytest.mark.parametrize("resource", ["evidence", "transitions", "executions"])
def test_days_that_end_before_they_begin_break_a_rule(viewer, resource):
    answer = viewer.get(f"{ROLLOUT}/{resource}?from=2026-11-03&to=2026-11-02")
    assert "before they begin" in assert_problem(answer, 422, "rule-violated")["detail"]


@pytest.mark.parametrize("resource", ["evidence", "transitions", "executions"])
@pytest.mark.parametrize("role", [Role.INGEST, Role.RUNTIME])
def test_only_a_viewer_and_above_reads(life, viewer, resource, role):
    token = create_token(life.context, role=role, environment=ENVIRONMENT)
    assert_problem(Api(viewer.app, token).get(f"{ROLLOUT}/{resource}"), 403, "forbidden")
    elsewhere = create_token(life.context, role=Role.VIEWER, environment="elsewhere")
    assert_problem(Api(viewer.app, elsewhere).get(f"{ROLLOUT}/{resource}"), 403, "forbidden")


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        pytest.param("application/x-ndjson", 200, id="ndjson"),
        pytest.param("*/*", 200, id="anything"),
        pytest.param("application/json", 406, id="json alone"),
    ],
)
def test_evidence_is_ndjson_and_nothing_else(viewer, accept, status):
    assert viewer.get(f"{ROLLOUT}/evidence", Accept=accept).status_code == status


def send_counters(life: Life, *prompts: Prompt) -> None:
    """Let a host with no assignment id export counters of today's prompts."""
    end = life.calendar.now
    body = metrics(
        prompts,
        Interval(end - timedelta(hours=1), end),
        owner="nobody",
        environment=ENVIRONMENT,
    )
    assert life.host.send(body).status == 200


def prompt_now(life: Life, **changed) -> Prompt:
    at = life.calendar.now - timedelta(minutes=30)
    return Prompt("p-1", (), at, **changed)


def test_transitions_are_counted_by_what_is_asked_for(viewer, life):
    send_counters(life, prompt_now(life, decisions=("tracked", "tracked", "would_stop")))
    day = life.today.isoformat()
    found = viewer.get(f"{ROLLOUT}/transitions?by=day,decision,mode,reset_reason").get_json()
    shared = {"day": day, "mode": "shadow", "reset_reason": None}
    assert found["items"] == [
        {"of": {**shared, "decision": "tracked"}, "transitions": 2},
        {"of": {**shared, "decision": "would_stop"}, "transitions": 1},
    ]
    assert (found["total"], found["shared"], found["next"]) == (3, 0, None)
    by_version = viewer.get(f"{ROLLOUT}/transitions?by=version").get_json()
    assert by_version["items"] == [{"of": {"version": VERSION}, "transitions": 3}]


def test_parts_of_transitions_follow_each_other(viewer, life):
    send_counters(life, prompt_now(life, decisions=("tracked", "would_warn", "would_stop")))
    first = viewer.get(f"{ROLLOUT}/transitions?by=decision&limit=2").get_json()
    rest = viewer.get(first["next"]).get_json()
    words = [item["of"]["decision"] for part in (first, rest) for item in part["items"]]
    assert words == ["tracked", "would_stop", "would_warn"]
    assert (first["total"], rest["total"], rest["next"]) == (3, 3, None)


def test_an_unknown_dimension_of_transitions_is_rejected(viewer):
    answer = viewer.get(f"{ROLLOUT}/transitions?by=owner")
    assert assert_problem(answer, 400, "invalid-field")["errors"][0]["pointer"] == "/by"


def send_executions(life: Life, **failed: int) -> None:
    """Let a host export how many of its tool calls succeeded and failed today."""
    end = life.calendar.now
    body = metrics((), Interval(end - timedelta(hours=1), end), owner="x", environment=ENVIRONMENT)
    scope = body.resource_metrics[0].scope_metrics[0]
    del scope.metrics[:]
    found = scope.metrics.add(name="agent.guard.tool.executions")
    found.sum.aggregation_temporality = DELTA  # type: ignore[assignment]  # number
    found.sum.is_monotonic = True
    for status, calls in failed.items():
        point = found.sum.data_points.add(as_int=calls, time_unix_nano=to_ns(end))
        point.start_time_unix_nano = to_ns(end - timedelta(hours=1))
        named = {"name": GUARD, "mode": "shadow", "execution.status": status}
        for key, value in named.items():
            point.attributes.add(key=f"agent.guard.{key}", value=any_value(value))
    assert partial_of(life.host.send(body), "metrics") == (0, "")


def test_the_execution_sli_is_errors_of_all_by_day_version_and_mode(viewer, life):
    send_executions(life, success=30, error=10)
    found = viewer.get(f"{ROLLOUT}/executions").get_json()
    assert found["items"] == [
        {
            "day": life.today.isoformat(),
            "version": VERSION,
            "mode": "shadow",
            "success": 30,
            "error": 10,
            "error_share": 0.25,
        }
    ]
    assert (found["success"], found["error"], found["next"]) == (30, 10, None)


def test_days_without_executions_have_no_share(viewer, life):
    send_executions(life, success=0, error=0)
    (item,) = viewer.get(f"{ROLLOUT}/executions").get_json()["items"]
    assert (item["success"], item["error"], item["error_share"]) == (0, 0, None)


@pytest.mark.parametrize("day", ["0", "2026-13-01", "20261102", "yesterday"])
def test_what_is_no_day_is_refused(viewer, day):
    answer = viewer.get(f"{ROLLOUT}/executions?from={day}")
    assert assert_problem(answer, 400, "invalid-field")["errors"][0]["pointer"] == "/from"


def test_events_are_no_volume_of_counters(viewer, two_days):
    assert viewer.get(f"{ROLLOUT}/transitions").get_json()["total"] == 0
