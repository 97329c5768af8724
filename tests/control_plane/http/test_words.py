"""Names in answers: one name for one thing, and codes that programs can use as they are."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from guardwave.control_plane.commands.rollback import FoundViolation, latch
from guardwave.reducer.vocabulary import Invariant, Mode
from tests.control_plane.http.conftest import ENVIRONMENT, GUARD, PLACE

# What was once used beside the name that stayed.
RETIRED = {"treated_bps", "requested_by", "by", "number"}
TIMES = re.compile(r"\d{4}-\d\d-\d\dT")
# Members whose value a program compares with a word it knows.
CODES = {"state", "status", "phase", "mode", "gate", "verdict", "type", "cohort", "role"}


@pytest.fixture
def answers(context, admin, operator, rollout, passed_gate) -> list[Any]:
    """Every kind of answer of the API once."""
    gate = passed_gate()
    latch(context, ENVIRONMENT, [violation()])
    admin.post("/api/v1/tokens", {"role": "viewer", "environment": ENVIRONMENT})
    evaluations = f"{rollout}/gate-evaluations"
    asked = operator.post(evaluations, {"gate": "shadow"}, Idempotency_Key="k")
    owners = {"owners": [{"owner": "a", "ownership": "known", "trusted": True}]}
    return [
        response.get_json()
        for response in (
            operator.post(f"{PLACE}/owners", owners),
            asked,
            admin.get("/api/v1/environments"),
            admin.get("/api/v1/tokens"),
            operator.get(PLACE),
            operator.get(rollout),
            operator.get(f"{rollout}/cohorts"),
            operator.get(f"{rollout}/waves"),
            operator.get(f"{rollout}/waves/1"),
            operator.get(f"{evaluations}/{gate.id}"),
            operator.get(f"{PLACE}/rollbacks"),
            operator.get(f"{PLACE}/telemetry"),
            operator.get(f"{PLACE}/telemetry/sources"),
            operator.get(f"{rollout}/violations"),
            operator.get(f"{PLACE}/owners/a"),
            operator.get("/api/v1/audit-events"),
        )
    ]


def violation() -> FoundViolation:
    return FoundViolation("r1", Invariant.CONTRACT_VIOLATION, GUARD, Mode.WARN, 1)


def members(answer: object, path: str = "") -> Iterator[tuple[str, str, object]]:
    """Yield path, name and value of every member, however deep; those of a report are its own."""
    if isinstance(answer, dict):
        for name, value in answer.items():
            yield f"{path}/{name}", name, value
            if name != "result":
                yield from members(value, f"{path}/{name}")
    elif isinstance(answer, list):
        for item in answer:
            yield from members(item, path)


def test_answers_use_no_retired_name(answers):
    found = [member for answer in answers for member in members(answer)]
    assert len(found) > 200
    assert [path for path, name, _ in found if name in RETIRED] == []
    assert [path for path, name, _ in found if not re.fullmatch(r"[a-z0-9_]+", name)] == []


def test_times_are_in_utc_with_a_z(answers):
    times = [
        (path, value)
        for answer in answers
        for path, _, value in members(answer)
        if isinstance(value, str) and TIMES.match(value)
    ]
    assert len(times) > 10
    assert [path for path, value in times if not value.endswith("Z")] == []


def test_codes_have_no_spaces(answers):
    codes = [
        (path, value)
        for answer in answers
        for path, name, value in members(answer)
        if name in CODES and isinstance(value, str)
    ]
    assert ("/telemetry/state", "no_records") in codes
    assert [code for code in codes if not re.fullmatch(r"[a-z0-9_]+", code[1])] == []


def test_an_environment_links_to_its_guards_by_name(operator, rollout):
    assert operator.get(PLACE).get_json()["links"]["guards"] == {GUARD: rollout}


def test_a_condition_is_one_sentence_after_another(context, operator, rollout):
    latch(context, ENVIRONMENT, [violation()])
    shown = [
        condition["message"]
        for address in (PLACE, rollout, f"{rollout}/waves/1")
        for condition in operator.get(address).get_json()["conditions"]
    ]
    assert [sentence for sentence in shown if ".." in sentence.replace("...", "")] == []
    assert "0 complete days so far; the first look is after 7." in shown
