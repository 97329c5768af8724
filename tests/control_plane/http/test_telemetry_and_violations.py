"""Telemetry health and violations over HTTP."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from guardwave.control_plane.commands.rollback import FoundViolation, latch
from guardwave.control_plane.rollouts.access import create_token
from guardwave.control_plane.rollouts.context import Context
from guardwave.reducer.vocabulary import Invariant, Mode, Role
from tests.control_plane.http.conftest import ENVIRONMENT, GUARD, PLACE, Api, assert_problem
from tests.support.counting import Interval, metrics
from tests.support.hosts import Event, Host, Prompt, logs

TELEMETRY = f"{PLACE}/telemetry"
OTHER_GUARD = "repeated_tool_failure"


@pytest.fixture
def host(context, rollout) -> Host:
    return Host(context)


def starts(context: Context, *names: str, ago: timedelta = timedelta(minutes=2)) -> Sequence[Event]:
    at = context.clock.now() - ago
    return [Prompt(name, [], at).start() for name in names]


def test_telemetry_of_a_new_environment_is_no_records_and_not_zero_seconds_old(viewer, rollout):
    answer = viewer.get(TELEMETRY).get_json()
    assert (answer["environment"], answer["state"]) == (ENVIRONMENT, "no_records")
    assert answer["last_record_at"] is answer["last_record_age_seconds"] is None
    assert answer["counts"]["accepted"] == 0
    assert answer["counts"]["refused"] == {}
    assert answer["days"] == []
    assert viewer.get(answer["links"]["sources"]).get_json() == {"items": [], "next": None}


def test_telemetry_counts_accepted_and_rejected_items_by_reason(viewer, context, host, wall):
    for _ in range(2):
        host.send(logs(starts(context, "p-1", "p-2")))
    host.send(logs(starts(context, "old", ago=timedelta(hours=60))))
    host.send(logs(starts(context, "nameless"), version=""))
    wall.pass_by(seconds=7)
    answer = viewer.get(viewer.get(PLACE).get_json()["links"]["telemetry"]).get_json()
    assert (answer["state"], answer["last_record_age_seconds"]) == ("flowing", 7.0)
    assert answer["last_record_at"].endswith("Z")
    counts = answer["counts"]
    assert (counts["accepted"], counts["duplicate"]) == (2, 2)
    assert counts["refused"] == {"late": 1}
    (process,) = answer["instances"]
    assert (process["late"], process["future"], process["gaps"]) == (1, 0, 0)
    assert counts["quarantined"] == {"version_missing": 1}


def test_telemetry_counts_each_days_prompts_by_events_and_by_counters(viewer, context, host, wall):
    at = context.clock.now()
    prompts = [Prompt(f"p-{number}", [], at) for number in range(3)]
    host.send(logs([prompt.start() for prompt in prompts[1:]]))
    wall.pass_by(seconds=60)
    interval = Interval(at, context.clock.now())
    ids = {"agent.guard.assignment.id": ""}
    host.send(metrics(prompts, interval, owner="all", environment=ENVIRONMENT, resource=ids))
    wall.pass_by(seconds=86_400)
    day = viewer.get(TELEMETRY).get_json()["days"][-1]
    assert day["reason"] == "it is not sealed yet"
    (answer,) = day["prompts"]
    assert (answer["by_events"], answer["by_counters"], answer["untold"]) == (2, 3, 1)


def test_sources_are_read_in_parts_each_producer_and_version_once(viewer, context, host, rollout):
    hosts = [host, Host(context)]
    versions = ("1.0", "1.1/é", "")
    for sender in hosts:
        for version in versions:
            sender.send(logs(starts(context, f"{sender.token} {version}"), version=version))
    address, found = f"{TELEMETRY}/sources?limit=4", []
    while address:
        page = viewer.get(address).get_json()
        found.append(page["items"])
        address = page["next"]
    assert [len(part) for part in found] == [4, 2]
    sources = [source for part in found for source in part]
    assert [(source["producer"], source["version"]) for source in sources] == sorted(
        (host.token.split("_")[1], version) for host in hosts for version in versions
    )
    by_version = {source["version"]: source for source in sources}
    assert by_version["1.0"]["counts"]["accepted"] == 1
    assert (by_version["1.0"]["ahead_seconds"], by_version["1.0"]["is_skewed"]) == (-120, False)
    assert by_version[""]["counts"]["quarantined"] == {"version_missing": 1}
    assert by_version[""]["last_record_at"] is by_version[""]["ahead_seconds"] is None


def violation(number: int, guard: str) -> FoundViolation:
    invariant = Invariant.MODE_MISMATCH if number % 2 else Invariant.SENSITIVE_FIELD
    return FoundViolation(f"record-{number}", invariant, guard, Mode.WARN, 1)


def test_violations_are_read_newest_first_and_those_of_other_guards_elsewhere(
    viewer, context, rollout
):
    latch(
        context,
        ENVIRONMENT,
        [violation(at, OTHER_GUARD if at == 3 else GUARD) for at in range(1, 6)],
    )
    address, pages = viewer.get(rollout).get_json()["links"]["violations"] + "?limit=2", []
    while address:
        page = viewer.get(address).get_json()
        pages.append([violation["id"] for violation in page["items"]])
        address = page["next"]
    assert pages == [[5, 4], [2, 1]]
    (newest,) = viewer.get(f"{rollout}/violations?limit=1").get_json()["items"]
    assert newest.pop("at").endswith("Z")
    assert newest == {
        "id": 5,
        "invariant": "mode_mismatch",
        "guard": GUARD,
        "mode": "warn",
        "generation": 1,
        "latches": True,
    }


def test_a_guard_without_violations_has_none_and_one_without_a_rollout_is_unknown(viewer, rollout):
    assert viewer.get(f"{rollout}/violations").get_json() == {"items": [], "next": None}
    assert_problem(viewer.get(f"{PLACE}/guards/nobody/violations"), 404, "not-found")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("telemetry", id="telemetry"),
        pytest.param("telemetry/sources", id="sources"),
        pytest.param(f"guards/{GUARD}/violations", id="violations"),
    ],
)
def test_only_who_may_view_the_environment_reads_them(app, context, rollout, path):
    for role, environment in [
        (Role.INGEST, ENVIRONMENT),
        (Role.RUNTIME, ENVIRONMENT),
        (Role.VIEWER, "elsewhere"),
    ]:
        token = create_token(context, role=role, environment=environment)
        assert_problem(Api(app, token).get(f"{PLACE}/{path}"), 403, "forbidden")
    admin = Api(app, create_token(context, role=Role.ADMIN, environment=None))
    unknown = f"/api/v1/environments/unknown/{path}"
    assert_problem(admin.get(unknown), 404, "not-found")
