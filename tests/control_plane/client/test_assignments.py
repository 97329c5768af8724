"""Assignments over a real socket: control planes that answer well, badly, late or never."""

import time

import pytest

from guardwave.control_plane.client import Assignments
from guardwave.control_plane.client import assignments as module
from guardwave.reducer.vocabulary import Mode
from tests.control_plane.client.answering_plane import GUARD, answer
from tests.support.web_workers import PATIENCE_S, until

LIMIT_S = 0.2


def test_an_owner_gets_what_the_control_plane_says(plane, assignments):
    found = assignments.resolve(GUARD, "workspace-1")
    assert (found.mode, found.assignment_id, found.generation) == (Mode.ENFORCE, "a1.x", 7)
    assert not found.is_fallback
    path, headers = plane.asked[0]
    assert path == (
        f"/api/v1/environments/internal/guards/{GUARD}/assignments/workspace-1"
        "?service.version=1.4.0&route=interactive_foreground"
    )
    assert headers["Authorization"] == "Bearer gw_x_y"


def test_a_young_answer_is_not_asked_for_again(plane, assignments, seconds):
    first = assignments.resolve(GUARD, "workspace-1")
    seconds.now += 4.9
    assert assignments.resolve(GUARD, "workspace-1") is first
    assert len(plane.asked) == 1


def test_an_older_answer_is_asked_for_with_its_etag(plane, assignments, seconds):
    first = assignments.resolve(GUARD, "workspace-1")
    seconds.now += 5.1
    assert assignments.resolve(GUARD, "workspace-1") is first
    assert plane.asked[1][1]["If-None-Match"] == '"one"'


def test_a_rollback_is_followed(plane, assignments, seconds):
    assignments.resolve(GUARD, "workspace-1")
    plane.document, plane.etag = answer(mode="shadow", generation=8), '"two"'
    seconds.now += 5.1
    assert assignments.resolve(GUARD, "workspace-1").mode is Mode.SHADOW


def test_while_the_control_plane_is_away_the_last_answer_stays_for_its_ttl(
    plane, assignments, seconds
):
    first = assignments.resolve(GUARD, "workspace-1")
    plane.status = 503
    seconds.now += 29
    assert assignments.resolve(GUARD, "workspace-1") is first
    seconds.now += 2
    fallen = assignments.resolve(GUARD, "workspace-1")
    assert (fallen.mode, fallen.is_fallback) == (Mode.SHADOW, True)


def test_an_older_generation_is_never_used(plane, assignments, seconds):
    first = assignments.resolve(GUARD, "workspace-1")
    plane.document, plane.etag = answer(generation=6, cohort="control"), '"old"'
    seconds.now += 5.1
    assert assignments.resolve(GUARD, "workspace-1") is first
    seconds.now += 30
    assert assignments.resolve(GUARD, "workspace-1").is_fallback


def test_a_newer_generation_seen_for_one_owner_ends_the_answers_of_the_others(
    plane, assignments, seconds
):
    assignments.resolve(GUARD, "workspace-1")
    plane.document, plane.etag = answer(mode="shadow", generation=8), '"two"'
    assignments.resolve(GUARD, "workspace-2")
    assert assignments.resolve(GUARD, "workspace-1").mode is Mode.SHADOW


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_ends_what_was_held(plane, assignments, seconds, status):
    assignments.resolve(GUARD, "workspace-1")
    plane.status = status
    seconds.now += 5.1
    assert assignments.resolve(GUARD, "workspace-1").is_fallback


def test_a_control_plane_that_hangs_costs_a_prompt_200_ms_and_its_late_answer_is_kept(
    plane, seconds, monkeypatch
):
    monkeypatch.setattr(module, "NETWORK_TIMEOUT_SECONDS", PATIENCE_S)
    hurried = Assignments(
        plane.address, "gw_x_y", "internal", service_version="1.4.0", monotonic=seconds
    )
    plane.release.clear()
    started = time.monotonic()
    assert hurried.resolve(GUARD, "workspace-1").is_fallback
    waited = time.monotonic() - started
    plane.release.set()
    late = until(lambda: unless_fallback(hurried.resolve(GUARD, "workspace-1")))
    assert late.mode is Mode.ENFORCE
    assert len(plane.asked) == 1
    assert waited >= LIMIT_S
    hurried.close()


def unless_fallback(found):
    return None if found.is_fallback else found


def test_a_pinned_prompt_keeps_its_mode(plane, assignments, seconds):
    with assignments.pin(GUARD, "workspace-1") as pinned:
        plane.document, plane.etag = answer(mode="shadow", generation=8), '"two"'
        seconds.now += 60
        assert assignments.resolve(GUARD, "workspace-1").mode is Mode.SHADOW
        assert pinned.mode is Mode.ENFORCE
