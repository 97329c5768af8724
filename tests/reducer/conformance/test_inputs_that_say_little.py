"""Sparse inputs: fields that are missing, null or spelled in another way."""

import pytest

from guardwave.reducer.conformance import MACHINES
from guardwave.reducer.conformance.vectors import Vector, VectorStep, run

FAILED = {
    "tool": "fetch",
    "status": "error",
    "execution_status": "error",
    "error_type": "timeout",
}
CALL = {"call_id": "c1", "tool": "charge"}
AGAIN = {"call_id": "c2", "tool": "charge"}
READ = {"id": "a", "tool": "read"}
NULLS = dict.fromkeys(
    ("complete", "input_reliable", "external_input", "queued_prompt", "event", "observations")
)
UNDECLARED = dict.fromkeys(
    ("side_effect", "idempotent", "idempotency", "idempotency_key_fields", "idempotency_window")
)


def case(guard, *steps, words, **config):
    return pytest.param(guard, config, steps, id=words)


def repeated_failure_run(*steps, words, mode="enforce", **config):
    return case("repeated-failure", *steps, words=words, mode=mode, **config)


def batch(*observations, **more):
    return {"observations": [*observations], **more}


@pytest.mark.parametrize(
    ("guard", "config", "steps"),
    [
        repeated_failure_run((NULLS, {"decision": "none"}), words="an empty batch of nulls"),
        repeated_failure_run(
            (batch({**FAILED, "provider_duplicate": None}, complete=None), {"failure_count": 1}),
            words="a failure with nulls",
        ),
        repeated_failure_run(
            (batch(FAILED), {"decision": "tracked"}), words="a null route", route=None
        ),
        repeated_failure_run(
            (batch(FAILED), {"decision": "none"}), words="an unknown route", route="webhook"
        ),
        repeated_failure_run(
            (batch(FAILED), {"telemetry": {"metric": {"mode": "shadow"}}}),
            words="a null mode",
            mode=None,
        ),
        repeated_failure_run(
            (batch(FAILED), {"telemetry": {"metric": {"mode": "shadow"}}}),
            words="a mode that is no text",
            mode=["enforce"],
        ),
        *(
            repeated_failure_run(
                ({"event": "parse_mode", **given}, {"mode": "shadow", "diagnostic": is_told}),
                words=f"the mode {given.get('value', 'left out')!r}",
            )
            for given, is_told in (
                ({"value": 1}, True),
                ({"value": True}, True),
                ({"value": {"mode": "enforce"}}, True),
                ({"value": None}, False),
                ({}, False),
            )
        ),
        case("duplicate-call-id", ({}, {"calls": []}), words="no calls"),
        case("duplicate-call-id", ({"calls": None}, {"calls": []}), words="null calls"),
        case("duplicate-call-id", ({"event": "batch"}, {"calls": []}), words="no responses"),
        case("duplicate-call-id", ({"event": "seed_history"}, {"calls": []}), words="no entries"),
        case(
            "duplicate-call-id",
            ({"event": "seed_history", "entries": [{**READ, "answered": None}]}, {}),
            ({"calls": [READ]}, {"calls": [{"action": "synthetic"}]}),
            words="a null for answered",
        ),
        case(
            "duplicate-call-id",
            ({"calls": [{"id": "a"}]}, {"calls": [{"action": "execute", "call_id": "a"}]}),
            ({"calls": [{"id": "a"}]}, {"calls": [{"action": "execute", "call_id": "a__dup_2"}]}),
            words="calls without a tool equal no other",
            suffix=None,
            generated_prefix=None,
            route=None,
        ),
        case(
            "identical-call",
            ({"calls": None, "evidence": None, "budget": None}, {"decision": "complete"}),
            words="null calls and evidence",
        ),
        case(
            "identical-call",
            ({"calls": [CALL, CALL]}, {"decision": "fail", "max_count": 2}),
            words="a threshold with a fraction of zero",
            threshold=2.0,
            max_evidence_resets=None,
        ),
        case(
            "side-effect",
            ({**CALL, "request": None, "outcome": None}, {"record": "succeeded"}),
            ({**AGAIN, "now_ms": None, "approved": None}, {"decision": "suspend"}),
            words="null settings and nulls in a call",
            action=None,
            scope=None,
            ttl_ms=None,
            tools=None,
        ),
        case(
            "side-effect",
            (CALL, {"executed": True}),
            (AGAIN, {"decision": "suspend"}),
            words="a tool that declares nulls",
            tools={"charge": UNDECLARED},
        ),
        case("side-effect", ({"event": "parallel"}, {"results": []}), words="no parallel calls"),
        case(
            "side-effect",
            ({**CALL, "now_ms": 1.0}, {"executed": True}),
            ({**AGAIN, "now_ms": 1e2}, {"decision": "block"}),
            ({**AGAIN, "now_ms": 102}, {"decision": "execute"}),
            words="times and a ttl as floats",
            action="block",
            ttl_ms=100.0,
        ),
        case(
            "side-effect",
            ({**CALL, "thread": "t"}, {"scope_used": "thread"}),
            ({**AGAIN, "thread": "t", "now_ms": 100}, {"decision": "block"}),
            ({**AGAIN, "thread": "t", "now_ms": 101}, {"decision": "execute"}),
            words="an action as a table",
            action={"action": "block", "scope": "thread", "ttl_ms": 100},
        ),
        case(
            "side-effect",
            ({**CALL, "thread": "t"}, {"scope_used": "thread"}),
            ({**AGAIN, "thread": "t", "now_ms": 8}, {"decision": "execute"}),
            words="a table with settings beside it, which outrank it",
            action={"action": "block", "ttl_ms": 100},
            scope="thread",
            ttl_ms=7,
        ),
    ],
)
def test_a_missing_field_has_its_default(guard, config, steps):
    vector = Vector("", "", config, tuple(VectorStep(*step) for step in steps))
    assert run(vector, MACHINES[guard]) is None


@pytest.mark.parametrize(
    ("guard", "config", "given", "words"),
    [
        pytest.param("identical-call", {"threshold": 2.5}, {}, "a whole number", id="a fraction"),
        pytest.param("identical-call", {"threshold": True}, {}, "a whole number", id="true"),
        pytest.param("side-effect", {"ttl_ms": "9"}, {}, "/config/ttl_ms: must be", id="a text"),
        pytest.param("side-effect", {}, {"tool": "t"}, "/call_id: is missing", id="no call id"),
        pytest.param("side-effect", {}, {**CALL, "call_id": None}, "be a text", id="a null id"),
        pytest.param("duplicate-call-id", {"route": "webhook"}, {}, "webhook", id="a route"),
    ],
)
def test_a_wrong_field_is_refused_by_its_place(guard, config, given, words):
    failure = run(Vector("", "", config, (VectorStep(given, {}),)), MACHINES[guard])
    assert failure is not None
    assert words in failure.difference.found
