"""Health probes: ready needs a snapshot that was read, is young, and never went back."""

import pytest

from guardwave.control_plane.data_plane import EXTENSION, DataPlane
from guardwave.control_plane.data_plane.credential_cache import CredentialCache
from guardwave.control_plane.data_plane.refresher import Refresher
from guardwave.control_plane.server.app import create_app
from guardwave.control_plane.stores.keys import EnvironmentKeys
from guardwave.reducer.vocabulary import Mode
from tests.support.worlds import ENVIRONMENT, context_over, world_in


class Seconds:
    """A monotonic clock that a test moves."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def seconds():
    return Seconds()


@pytest.fixture
def context(store):
    return context_over(store)


@pytest.fixture
def refresher(context, seconds):
    made = Refresher(context, CredentialCache(context), monotonic=seconds, period_s=3600.0)
    yield made
    made.stop()


@pytest.fixture
def web(context, refresher):
    plane = DataPlane(refresher, CredentialCache(context), context.clock)
    return create_app(context, extensions={EXTENSION: plane}).test_client()


def problem_of(web):
    answer = web.get("/readyz")
    assert (answer.status_code, answer.mimetype) == (503, "application/problem+json")
    return answer.json["detail"]


def test_a_process_that_runs_is_up_without_a_token(web):
    assert web.get("/healthz").json == {"status": "up"}


def test_ready_names_the_revision_and_age_of_each_environment(context, web, seconds):
    world_in(context, Mode.SHADOW)
    web.get("/readyz")
    seconds.now += 1.5
    answer = web.get("/readyz")
    assert answer.status_code == 200
    revision = context.environments.load(ENVIRONMENT).revision
    assert answer.json["environments"] == {ENVIRONMENT: {"revision": revision, "age_seconds": 1.5}}


def test_an_old_snapshot_is_not_ready_until_it_is_young_again(web, refresher, seconds):
    assert web.get("/readyz").status_code == 200
    seconds.now += 2.1
    assert "has not heard from its store for 2 s" in problem_of(web)
    refresher.refresh()
    assert web.get("/readyz").status_code == 200


def test_an_emptied_store_is_a_loud_failure(store, context, web, refresher):
    world_in(context, Mode.ENFORCE)
    web.get("/readyz")
    store.flushall()
    refresher.refresh()
    assert "the store was emptied" in problem_of(web)


def test_one_environment_that_went_back_is_not_ready(store, context, web, refresher):
    world_in(context, Mode.ENFORCE)
    web.get("/readyz")
    store.hincrby(EnvironmentKeys(ENVIRONMENT).state, "revision", -1)
    refresher.refresh()
    assert f"environment {ENVIRONMENT} went back" in problem_of(web)


def test_a_store_that_nobody_prepared_is_not_ready(store, web):
    store.flushall()
    assert "holds nothing yet" in problem_of(web)
