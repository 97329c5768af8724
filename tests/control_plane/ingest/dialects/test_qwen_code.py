"""qwen-code's recorded bodies through the real door and store, compared with their index."""

import hashlib
from collections import Counter

import pytest

from guardwave.control_plane.ingest.evidence.prompt_deltas import duration_bucket
from guardwave.reducer.vocabulary import Outcome
from tests.support.otlp.qwen import CASES, Case, Receiver, cases, outcome_of

NAMES = sorted(cases())
WITH_SPANS = [name for name in NAMES if cases()[name].has_spans]


def expected(case: Case) -> Counter[str]:
    """Add up a case's prompts by the index."""
    sums: Counter[str] = Counter()
    for prompt in case.prompts:
        decisions = prompt["guard_decisions"]
        sums.update(
            started=1,
            ended=1,
            covered=1,
            turns=prompt["turnCount"],
            tokens=prompt["total_tokens"],
            would_stopped=decisions.count("would_stop"),
            stopped=decisions.count("stopped"),
            unreliable=int("reset:unreliable_input" in decisions),
        )
        sums[outcome_of(prompt)] += 1
    return sums


def stored(receiver: Receiver) -> Counter[str]:
    """Add up the owner-days, but for how long prompts took."""
    sums: Counter[str] = Counter()
    for row in receiver.rows():
        for name in (*expected_names(), *Outcome):
            sums[name] += getattr(row, name)
    return +sums


def expected_names() -> tuple[str, ...]:
    flags = ("would_stopped", "stopped", "unreliable")
    return ("started", "ended", "covered", "turns", "tokens", *flags)


def decisions(receiver: Receiver) -> Counter[str]:
    """Count the decisions in the volume of the guard's counter."""
    counted: Counter[str] = Counter()
    for day in receiver.context.evidence.days("internal"):
        for (_, name), value in receiver.context.evidence.counters("internal", day).items():
            metric, _, labels = name.rstrip("}").partition("{")
            if metric == "agent.guard.transitions":
                counted[dict(pair.split("=") for pair in labels.split(","))["decision"]] += value
    return counted


@pytest.mark.parametrize("name", NAMES)
def test_the_recorded_bodies_are_the_ones_of_the_index(name):
    for body in cases()[name].entry["bodies"]:
        found = (CASES / body["file"]).read_bytes()
        assert hashlib.sha256(found).hexdigest() == body["sha256"]


@pytest.mark.parametrize("name", NAMES)
def test_the_owner_days_of_a_case_equal_its_index(store, name):
    case = cases()[name]
    receiver = Receiver(store, case)
    receiver.send_all(case.bodies)
    assert stored(receiver) == +expected(case)
    indexed = Counter(
        decision.partition(":")[0]
        for prompt in case.prompts
        for decision in prompt["guard_decisions"]
    )
    assert decisions(receiver) == indexed


@pytest.mark.parametrize("name", WITH_SPANS)
def test_log_records_alone_give_the_same_outcome_as_the_span(store, name):
    case = cases()[name]
    receiver = Receiver(store, case)
    receiver.send_all(case.without("traces"))
    by_logs = stored(receiver)
    durations = [bucket for row in receiver.rows() for bucket, count in row.durations]
    receiver.send_all([body for body in case.bodies if body.signal == "traces"])
    assert by_logs == stored(receiver) == +expected(case)
    # the client's own clock and its log records are at most 23 ms apart
    for bucket, prompt in zip(
        sorted(durations),
        sorted(prompt["span_duration_ms"] for prompt in case.prompts),
        strict=True,
    ):
        assert bucket == pytest.approx(duration_bucket(prompt / 1000), abs=3)


@pytest.mark.parametrize("name", WITH_SPANS)
def test_durations_are_the_spans_when_spans_are_sent(store, name):
    case = cases()[name]
    receiver = Receiver(store, case)
    receiver.send_all(case.bodies)
    indexed = Counter(duration_bucket(prompt["span_duration_ms"] / 1000) for prompt in case.prompts)
    found: Counter[int | None] = Counter()
    for row in receiver.rows():
        found.update(dict(row.durations))
    assert found == indexed
