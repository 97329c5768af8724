"""Assignments: the same answers through the pre-router and through Flask alone."""

from dataclasses import replace

import pytest
from werkzeug.test import Client

from guardwave.control_plane.commands.owners import state_owner_facts
from guardwave.control_plane.commands.rollback import FoundViolation, latch
from guardwave.control_plane.data_plane import EXTENSION, DataPlane
from guardwave.control_plane.data_plane.credential_cache import CredentialCache
from guardwave.control_plane.data_plane.refresher import Refresher
from guardwave.control_plane.server.app import create_app
from guardwave.control_plane.server.prerouter import PreRouter
from guardwave.control_plane.stores.keys import EnvironmentKeys
from guardwave.control_plane.stores.owners import StatedFacts
from guardwave.reducer.rollout.assignment import Assignment, verify
from guardwave.reducer.rollout.eligibility import Ownership
from guardwave.reducer.rollout.pseudonym import pseudonym_of
from guardwave.reducer.vocabulary import Cohort, Invariant, Mode, Role
from tests.support.worlds import (
    ENVIRONMENT,
    GUARD,
    KNOWN,
    OPERATOR,
    VERSION,
    WHY,
    context_over,
    world_in,
)

KEYS = EnvironmentKeys(ENVIRONMENT)


class Seconds:
    """A monotonic clock that a test moves."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def context(store):
    return context_over(store)


@pytest.fixture
def seconds():
    return Seconds()


@pytest.fixture
def plane(context, seconds):
    """A data plane whose thread never runs: tests refresh it themselves."""
    credentials = CredentialCache(context)
    refresher = Refresher(context, credentials, monotonic=seconds, period_s=3600.0)
    yield DataPlane(refresher, credentials, context.clock)
    refresher.stop()


def otlp_door(_request):
    raise AssertionError("an assignment reached the OTLP door")


@pytest.fixture(params=["pre-router", "flask"])
def door(request, context, plane):
    app = create_app(context, extensions={EXTENSION: plane})
    return Client(PreRouter(app, plane, otlp_door) if request.param == "pre-router" else app)


def address(owner, *, guard=GUARD, environment=ENVIRONMENT):
    return f"/api/v1/environments/{environment}/guards/{guard}/assignments/{owner}"


def ask(door, token, owner, **query):
    """Return the answer for an owner; `version` has a default, and None omits it."""
    given = {"service.version": query.pop("version", VERSION), **query}
    return door.get(
        address(owner),
        query_string={name: text for name, text in given.items() if text is not None},
        headers={"Authorization": f"Bearer {token}"},
    )


def reasons(answer):
    return [reason["code"] for reason in answer.json["reasons"]]


def test_a_treated_owner_gets_enforce_and_the_id_proves_it(context, door):
    world = world_in(context, Mode.ENFORCE)
    answer = ask(door, world.token(), world.roster[0])
    assert answer.status_code == 200
    found = answer.json
    wave = context.environments.wave(ENVIRONMENT, GUARD, 2)
    assert {name: found[name] for name in found if name not in {"assignment_id", "sentence"}} == {
        "environment": ENVIRONMENT,
        "guard": GUARD,
        "mode": "enforce",
        "cohort": "enforced",
        "wave": 2,
        "generation": 2,
        "reasons": [],
        "rank": 1,
        "roster_size": 40,
        "treated": 2,
        "roster_digest": wave.roster_digest,
        "algorithm": "guardwave-draw-1",
        "ceiling_bps": 500,
        "diagnostic": None,
        "ttl_s": 30,
    }
    held = context.environments.load(ENVIRONMENT)
    pseudonym = pseudonym_of(bytes.fromhex(held.pseudonym_key), world.roster[0])
    assignment = verify(bytes.fromhex(held.tag_key), ENVIRONMENT, found["assignment_id"])
    assert assignment == Assignment(GUARD, pseudonym, 2, Cohort.ENFORCED, Mode.ENFORCE, 2)
    assert "the first 2 are treated" in found["sentence"]


def test_never_more_than_the_share_is_treated(context, door):
    world = world_in(context, Mode.ENFORCE, owners=41)
    token = world.token()
    modes = [ask(door, token, owner).json["mode"] for owner in world.roster]
    assert modes == ["enforce"] * 2 + ["warn"] * 39


def test_a_roster_too_small_for_its_share_treats_nobody_and_gives_the_reason(context, door):
    world = world_in(context, Mode.ENFORCE, owners=19)
    answer = ask(door, world.token(), world.roster[0])
    assert answer.json["mode"] == "warn"
    assert "so nobody is treated" in answer.json["sentence"]


@pytest.mark.parametrize(
    ("owner", "query", "mode", "reason"),
    [
        pytest.param(None, {"version": None}, "shadow", "version_unknown", id="no version"),
        pytest.param(None, {"version": ""}, "shadow", "version_unknown", id="empty version"),
        pytest.param(None, {"version": "9"}, "shadow", "version_not_pinned", id="other version"),
        pytest.param(None, {"route": "cron"}, "off", "route_excluded", id="cron"),
        pytest.param(None, {"route": "sideways"}, "shadow", "route_excluded", id="unknown route"),
        pytest.param("stranger", {}, "shadow", "unknown_owner", id="unknown owner"),
        pytest.param("late", {}, "warn", "not_in_roster", id="joined after the draw"),
    ],
)
def test_why_an_owner_gets_no_more(context, door, owner, query, mode, reason):
    world = world_in(context, Mode.ENFORCE)
    state_owner_facts(context, ENVIRONMENT, {"late": KNOWN}, actor=OPERATOR, reason=WHY)
    answer = ask(door, world.token(), owner or world.roster[0], **query)
    assert answer.status_code == 200
    assert (answer.json["mode"], reasons(answer)[0]) == (mode, reason)
    assert answer.json["reasons"][0]["sentence"]


def test_an_owner_that_becomes_ineligible_keeps_its_wave_and_cohort(context, door):
    world = world_in(context, Mode.ENFORCE)
    doubted = StatedFacts(Ownership.UNKNOWN, is_trusted=True)
    first = world.roster[0]
    state_owner_facts(context, ENVIRONMENT, {first: doubted}, actor=OPERATOR, reason=WHY)
    found = ask(door, world.token(), first).json
    assert (found["mode"], found["cohort"], found["wave"]) == ("shadow", "enforced", 2)


@pytest.mark.parametrize("spelling", ["interactive", "acp_foreground", "interactive_foreground"])
def test_older_spellings_of_the_foreground_are_taken(context, door, spelling):
    world = world_in(context, Mode.ENFORCE)
    assert ask(door, world.token(), world.roster[0], route=spelling).json["mode"] == "enforce"


def test_a_latched_environment_answers_shadow_with_the_reason(context, door):
    world = world_in(context, Mode.ENFORCE)
    found = FoundViolation("one", Invariant.CONTRACT_VIOLATION, GUARD, Mode.ENFORCE, 2)
    latch(context, ENVIRONMENT, [found])
    answer = ask(door, world.token(), world.roster[0])
    assert (answer.json["mode"], reasons(answer)) == ("shadow", ["rollout_latched"])


def test_after_two_seconds_without_the_store_every_answer_is_shadow_at_most(
    context, plane, door, seconds
):
    world = world_in(context, Mode.ENFORCE)
    token = world.token()
    assert ask(door, token, world.roster[0]).json["mode"] == "enforce"
    seconds.now += 2.1
    answer = ask(door, token, world.roster[0])
    assert (answer.json["mode"], reasons(answer)) == ("shadow", ["snapshot_stale"])
    assert (answer.json["cohort"], answer.json["wave"]) == ("enforced", 2)
    assert "not heard from its store for 2 s" in answer.json["diagnostic"]
    plane.refresher.refresh()
    assert ask(door, token, world.roster[0]).json["mode"] == "enforce"


def test_staleness_comes_before_reasons_of_the_owner_and_never_raises_a_mode(
    context, plane, door, seconds
):
    world = world_in(context, Mode.ENFORCE)
    token = world.token()
    plane.refresher.ensure_running()
    seconds.now += 3
    answer = ask(door, token, "stranger", route="cron")
    assert answer.json["mode"] == "off"
    assert reasons(answer) == ["snapshot_stale", "route_excluded", "unknown_owner"]


def test_an_emptied_store_is_shadow_and_never_no_rollouts(store, context, plane, door):
    world = world_in(context, Mode.ENFORCE)
    token = world.token()
    ask(door, token, world.roster[0])
    store.flushall()
    plane.refresher.refresh()
    answer = ask(door, token, world.roster[0])
    assert answer.status_code == 200
    assert (answer.json["mode"], reasons(answer)) == ("shadow", ["snapshot_stale"])
    assert "was emptied" in answer.json["diagnostic"]
    other = door.get(
        address("any", guard="never_seen"), headers={"Authorization": f"Bearer {token}"}
    )
    assert (other.status_code, other.json["mode"]) == (200, "shadow")
    assert other.json["assignment_id"] is None


def algorithm_of_tomorrow(_store, world):
    wave = world.context.environments.wave(ENVIRONMENT, GUARD, 2)
    world.store_rollout(world.rollout, wave=replace(wave, algorithm="guardwave-draw-9"))


def mode_of_tomorrow(store, _world):
    store.set(KEYS.rollout(GUARD), b'{"phase": "charge"}')
    store.hincrby(KEYS.state, "revision", 1)


def damaged_roster(store, _world):
    store.set(KEYS.roster(GUARD, 2), b"0123456789")


@pytest.mark.parametrize("spoil", [algorithm_of_tomorrow, mode_of_tomorrow, damaged_roster])
def test_what_this_server_does_not_understand_is_shadow_with_a_diagnostic(
    store, context, plane, door, spoil
):
    world = world_in(context, Mode.ENFORCE)
    spoil(store, world)
    answer = ask(door, world.token(), world.roster[0])
    assert (answer.status_code, answer.json["mode"]) == (200, "shadow")
    assert answer.json["diagnostic"]


def test_a_fault_of_the_server_is_shadow_and_its_log_names_no_owner(context, plane, door, caplog):
    world = world_in(context, Mode.ENFORCE)
    token = world.token()
    plane.refresher.ensure_running()
    held = plane.refresher.snapshot
    spoilt = replace(held.environments[ENVIRONMENT], pseudonym_key=b"")
    plane.refresher._snapshot = replace(held, environments={ENVIRONMENT: spoilt})
    answer = ask(door, token, world.roster[0])
    assert (answer.status_code, answer.json["mode"]) == (200, "shadow")
    assert "ValueError" in caplog.text
    assert world.roster[0] not in caplog.text


def test_an_answer_that_the_asker_holds_is_not_sent_again(context, door):
    world = world_in(context, Mode.ENFORCE)
    token = world.token()
    first = ask(door, token, world.roster[0])
    assert first.headers["Cache-Control"] == "no-store"
    headers = {"Authorization": f"Bearer {token}", "If-None-Match": first.headers["ETag"]}
    query = {"service.version": VERSION}
    again = door.get(address(world.roster[0]), query_string=query, headers=headers)
    assert (again.status_code, again.data) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    for changed in ({"service.version": "9"}, {**query, "route": "cron"}):
        other = door.get(address(world.roster[0]), query_string=changed, headers=headers)
        assert other.status_code == 200


def test_the_request_id_is_echoed_or_made(context, door):
    world = world_in(context, Mode.SHADOW)
    headers = {"Authorization": f"Bearer {world.token()}"}
    assert door.get(address("any"), headers=headers).headers["X-Request-Id"]
    answer = door.get(address("any"), headers={**headers, "X-Request-Id": "mine-1"})
    assert answer.headers.getlist("X-Request-Id") == ["mine-1"]


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        pytest.param(None, 401, id="none"),
        pytest.param("Bearer nonsense", 401, id="no token"),
        pytest.param("Basic abc", 401, id="another scheme"),
        pytest.param(Role.INGEST, 403, id="ingest"),
        pytest.param(Role.RUNTIME, 200, id="runtime"),
        pytest.param(Role.VIEWER, 200, id="viewer"),
        pytest.param(Role.OPERATOR, 200, id="operator"),
        pytest.param(Role.ADMIN, 200, id="admin"),
    ],
)
def test_who_may_ask(context, door, authorization, status):
    world = world_in(context, Mode.SHADOW)
    if isinstance(authorization, Role):
        authorization = f"Bearer {world.token(authorization)}"
    headers = {} if authorization is None else {"Authorization": authorization}
    answer = door.get(address("any"), headers=headers)
    assert answer.status_code == status
    if status != 200:
        assert answer.mimetype == "application/problem+json"
    if status == 401:
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_token_of_another_environment_may_not_ask(context, door):
    world = world_in(context, Mode.SHADOW)
    answer = ask(door, world.token(environment="public-cloud"), "any")
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        pytest.param(address("any", guard="unknown"), 404, "has no rollout", id="guard"),
        pytest.param(address("any", environment="elsewhere"), 404, "no environment", id="place"),
        pytest.param(address("a%20b"), 400, "owner", id="owner with a space"),
        pytest.param(address("x" * 257), 400, "owner", id="owner too long"),
        pytest.param(f"{address('any')}?version=1", 400, "version", id="unknown parameter"),
        pytest.param(f"{address('any')}?route=cron&route=cron", 400, "twice", id="given twice"),
    ],
)
def test_a_question_that_makes_no_sense_is_a_problem(context, door, path, status, message):
    world = world_in(context, Mode.SHADOW)
    headers = {"Authorization": f"Bearer {world.token(Role.ADMIN)}"}
    answer = door.get(path, headers=headers)
    assert (answer.status_code, answer.mimetype) == (status, "application/problem+json")
    assert message in answer.text
    assert "a b" not in answer.text
    assert "xxxx" not in answer.text


@pytest.mark.parametrize("name", ["..%2fx", "%2e%2e", "..%252fx"])
def test_an_environment_is_not_a_path(context, door, name):
    world = world_in(context, Mode.SHADOW)
    headers = {"Authorization": f"Bearer {world.token(Role.ADMIN)}"}
    answer = door.get(address("any", environment=name), headers=headers)
    assert answer.status_code in {400, 404}
    assert answer.mimetype == "application/problem+json"


def test_other_methods_are_rejected(context, door):
    world = world_in(context, Mode.SHADOW)
    headers = {"Authorization": f"Bearer {world.token()}"}
    assert door.put(address("any"), headers=headers).status_code == 405


def test_the_document_describes_the_route(context, door):
    path = "/api/v1/environments/{environment}/guards/{guard}/assignments/{owner}"
    described = door.get("/api/v1/openapi.json").json["paths"][path]["get"]
    assert [
        parameter["name"] for parameter in described["parameters"] if parameter["in"] == "query"
    ] == [
        "service.version",
        "route",
    ]
