"""Fallbacks: their cause in the answer and in the log."""

import json
import re
import threading
from pathlib import Path

import pytest

from guardwave.control_plane.client import Assignments, FallbackReason
from guardwave.control_plane.client import assignments as module
from guardwave.reducer.vocabulary import Mode
from tests.control_plane.client.answering_plane import GUARD, answer, why
from tests.support.web_workers import PATIENCE_S, free_port, until

DOCS = Path(__file__).parents[3] / "docs" / "client.md"
TOKEN = "gw_abcdefghijkm_secret"


def test_a_clock_that_raises_is_shadow(plane, patience):
    def broken():
        raise RuntimeError("workspace-7")

    made = Assignments(plane.address, TOKEN, "internal", service_version="1", monotonic=broken)
    found = made.resolve(GUARD, "workspace-1")
    assert why(found) is FallbackReason.NOT_ASKED
    assert "RuntimeError" in found.sentence
    made.close()


def test_a_log_that_raises_ends_no_prompt(assignments, monkeypatch):
    def broken(_):
        raise RuntimeError

    monkeypatch.setattr(module._log, "filters", [broken])
    assert why(assignments.resolve(GUARD, None)) is FallbackReason.NOT_ASKED


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        pytest.param(400, "refused", ("refused with 400 (no such", "mend what it names"), id="400"),
        pytest.param(401, "refused", ("refused with 401 (no such", "--environment i"), id="401"),
        pytest.param(403, "refused", ("403 (no such", "role runtime for environment i"), id="403"),
        pytest.param(404, "refused", ("404 (no such", "without /api/v1"), id="404"),
        pytest.param(410, "refused", ("refused with 410 (no such", "ask those who run"), id="410"),
        pytest.param(429, "unavailable", ("429 (no such", "the next prompt asks"), id="too often"),
        pytest.param(500, "unavailable", ("500 (no such",), id="a fault"),
        pytest.param(503, "unavailable", ("503 (no such",), id="no store"),
        pytest.param(204, "not_understood", ("its status is 204",), id="no content"),
        pytest.param(302, "not_understood", ("302; see that endpoint",), id="sent elsewhere"),
        pytest.param(304, "not_understood", ("its status is 304",), id="unchanged from nothing"),
    ],
)
def test_a_status_that_is_no_answer_is_reported_with_its_detail_and_a_remedy(
    plane, assignments, caplog, status, code, words
):
    plane.status, plane.body = status, b"" if status < 400 else problem("no such thing.")
    found = assignments.resolve(GUARD, "workspace-1")
    assert why(found) == code
    for word in words:
        assert word in found.sentence
    (record,) = caplog.records
    cause = found.sentence.removeprefix("Mode shadow: ").removesuffix(".")
    assert record.getMessage() == f"guard {GUARD}: no new assignment ({code}): {cause}"


def problem(detail):
    """Return a problem document with this detail."""
    return json.dumps({"title": "Wrong", "detail": detail}).encode()


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        pytest.param(b"", "(it gave no detail)", id="nothing"),
        pytest.param(b"<html>Not Found</html>", "(it gave no detail)", id="a page"),
        pytest.param(b"[]", "(it gave no detail)", id="no object"),
        pytest.param(b"[" * 60_000, "(it gave no detail)", id="nested beyond reason"),
        pytest.param(problem(7), "(it gave no detail)", id="a number"),
        pytest.param(problem(" \n"), "(it gave no detail)", id="blank"),
        pytest.param(problem("a\r\nb\x1b[31m c"), "(a b [31m c)", id="line ends and controls"),
        pytest.param(problem("x" * 9000), f"({'x' * 300})", id="far too long"),
        pytest.param(problem("no /a/workspace-1?x"), "(no /a/***?x)", id="an owner repeated"),
        pytest.param(problem(f"Bearer {TOKEN}!"), "(Bearer ***!)", id="a token repeated"),
    ],
)
def test_the_detail_of_a_4xx_is_one_short_line_without_the_owner(
    plane, assignments, caplog, body, shown
):
    plane.status, plane.body = 404, body
    found = assignments.resolve(GUARD, "workspace-1")
    assert f"the control plane refused with 404 {shown}; compare" in found.sentence
    assert "workspace-1" not in caplog.text
    assert TOKEN not in caplog.text
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        pytest.param(b"", "it is not JSON", id="nothing"),
        pytest.param(b"<html>", "it is not JSON", id="no JSON"),
        pytest.param(b"\x8b\xff", "it is not JSON", id="no text"),
        pytest.param(b"[" * 60_000, "it is not JSON", id="nested beyond reason"),
        pytest.param(b"[]", "it is not a JSON object", id="no object"),
        pytest.param(answer(mode="charge"), "its mode is none of off,", id="unknown mode"),
        pytest.param(answer(mode=None), "its mode is none of off,", id="no mode"),
        pytest.param(answer(generation="7"), "its generation is not a whole", id="text"),
        pytest.param(answer(generation=True), "its generation is not a whole", id="truth"),
        pytest.param(answer(generation=None), "its mode is enforce and", id="no generation"),
        pytest.param(answer(reasons="none"), "its reasons are not a list", id="reasons as text"),
        pytest.param(answer(reasons=[{}]), "one of its reasons has no", id="a reason without code"),
        pytest.param(
            answer(reasons=[{"code": 7}]), "its code is not a text", id="a number as code"
        ),
        pytest.param(answer(ttl_s=0), "its ttl_s is missing or 0", id="over when it comes"),
        pytest.param(answer(ttl_s=None), "its ttl_s is missing or 0", id="no end"),
        pytest.param(answer(sentence="x" * 70_000), "it has 65536 bytes", id="far too long"),
    ],
)
def test_a_senseless_answer_is_shadow_and_reported(plane, assignments, body, wrong):
    plane.body = body if isinstance(body, bytes) else json.dumps(body).encode()
    found = assignments.resolve(GUARD, "workspace-1")
    assert why(found) is FallbackReason.NOT_UNDERSTOOD
    assert f"the answer was not understood: {wrong}" in found.sentence


def test_a_ttl_beyond_reason_is_cut(plane, assignments, seconds):
    plane.document = answer(ttl_s=10**400)
    assert assignments.resolve(GUARD, "workspace-1").ttl_seconds == 300.0


def test_nobody_listening_is_not_reached(patience):
    port = free_port()
    address = f"http://ann:pass@127.0.0.1:{port}"
    made = Assignments(address, TOKEN, "internal", service_version="1.4.0")
    found = made.resolve(GUARD, "workspace-1")
    assert why(found) is FallbackReason.NOT_REACHED
    assert f"not reached (NewConnectionError); see that it runs at 127.0.0.1:{port}" in (
        found.sentence
    )
    assert "pass@" not in found.sentence
    made.close()


def test_a_control_plane_that_hangs_is_not_reached(plane, caplog):
    hurried = Assignments(plane.address, TOKEN, "internal", service_version="1.4.0")
    plane.release.clear()
    found = hurried.resolve(GUARD, "workspace-1")
    plane.release.set()
    assert why(found) is FallbackReason.NOT_REACHED
    assert "no answer within 200 ms; one that comes later is kept" in found.sentence
    assert "no answer within 200 ms" in caplog.text
    hurried.close()


def test_a_process_that_can_start_no_thread_gets_shadow_with_the_reason(
    plane, assignments, monkeypatch, caplog
):
    def fail(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    for _ in range(2):
        found = assignments.resolve(GUARD, "workspace-1")
        assert why(found) is FallbackReason.NOT_ASKED
        assert "no thread can be started" in found.sentence
    monkeypatch.undo()
    assert "no thread can be started" in caplog.text


def test_more_questions_than_a_client_asks_at_once_are_not_asked(plane, assignments, caplog):
    plane.release.clear()
    waiting = [
        threading.Thread(target=assignments.resolve, args=(GUARD, f"workspace-{number}"))
        for number in range(module.MOST_QUESTIONS_AT_ONCE)
    ]
    for thread in waiting:
        thread.start()
    assert until(lambda: len(plane.asked) == len(waiting))
    found = assignments.resolve(GUARD, "workspace-x")
    plane.release.set()
    for thread in waiting:
        thread.join(PATIENCE_S)
    assert why(found) is FallbackReason.NOT_ASKED
    assert f"{len(waiting)} questions wait for their answers" in found.sentence
    assert found.sentence.removeprefix("Mode shadow: ").removesuffix(".") in caplog.text


def test_an_answer_of_an_older_generation_is_superseded(plane, assignments, seconds):
    assignments.resolve(GUARD, "workspace-1")
    plane.document, plane.etag = answer(generation=6), '"old"'
    seconds.now += 31
    found = assignments.resolve(GUARD, "workspace-1")
    assert why(found) is FallbackReason.SUPERSEDED
    assert "the answer is of generation 6 and 7 was seen before" in found.sentence


def test_an_answer_in_shadow_needs_no_generation(plane, assignments, seconds):
    assignments.resolve(GUARD, "workspace-1")
    stale = {"code": "snapshot_stale", "sentence": "The store is away."}
    plane.document = answer(mode="shadow", generation=None, reasons=[stale], assignment_id=None)
    plane.etag = '"stale"'
    seconds.now += 5.1
    found = assignments.resolve(GUARD, "workspace-1")
    assert (found.mode, found.reasons, found.is_fallback) == (
        Mode.SHADOW,
        ("snapshot_stale",),
        False,
    )


def test_a_failed_question_is_logged_while_the_last_answer_still_holds(
    plane, assignments, seconds, caplog
):
    first = assignments.resolve(GUARD, "workspace-1")
    plane.status, plane.body = 503, problem("the store is away")
    seconds.now += 5.1
    assert assignments.resolve(GUARD, "workspace-1") is first
    assert f"guard {GUARD}: no new assignment (unavailable): " in caplog.text
    assert "503 (the store is away)" in caplog.text


def test_every_code_of_a_fallback_is_in_the_docs_with_what_happened():
    explained = re.findall(r"^\| `([a-z_]+)` \| \S+ .* \| .+ \|$", DOCS.read_text(), re.MULTILINE)
    assert set(FallbackReason) <= set(explained)
