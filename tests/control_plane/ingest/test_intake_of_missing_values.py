"""Missing values: ends without tokens or turns count as missing, and never as zero."""

from dataclasses import replace
from datetime import timedelta

import pytest

from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.reducer.rollout.state import EvidenceSource
from tests.support.counting import Interval, metrics
from tests.support.hosts import Event, Prompt, logs, partial_of
from tests.support.worlds import ENVIRONMENT, GUARD, NOW

AT = NOW - timedelta(hours=2)
READ, WRITTEN = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
TURNS, DURATION = "agent.guard.prompt.turns", "agent.guard.prompt.duration"
METRICS = ("agent.guard.tokens", "agent.guard.turns")


def end_without(prompt: Prompt, *left_out: str) -> Event:
    end = prompt.end()
    kept = {key: value for key, value in end.attributes.items() if key not in left_out}
    return replace(end, attributes=kept)


def totals(context, *, source: EvidenceSource = EvidenceSource.EVENTS) -> tuple[int, ...]:
    (row,) = context.evidence.owner_days(ENVIRONMENT, GUARD, 1, [AT.date()], source=source)
    timed = sum(count for _, count in row.durations)
    return (row.ended, row.tokens, row.tokens_untold, row.turns, row.turns_untold, timed)


@pytest.mark.parametrize("encoding", list(Encoding), ids=lambda encoding: encoding.name.lower())
@pytest.mark.parametrize(
    ("left_out", "expected"),
    [
        pytest.param((), (1, 1000, 0, 5, 0, 1), id="everything is reported"),
        pytest.param((READ, WRITTEN), (1, 0, 1, 5, 0, 1), id="no tokens"),
        pytest.param((READ,), (1, 0, 1, 5, 0, 1), id="written tokens are a part of a sum"),
        pytest.param((WRITTEN,), (1, 0, 1, 5, 0, 1), id="read tokens are a part of a sum"),
        pytest.param((TURNS,), (1, 1000, 0, 0, 1, 1), id="no turns"),
        pytest.param((DURATION,), (1, 1000, 0, 5, 0, 0), id="no duration"),
        pytest.param((READ, TURNS, DURATION), (1, 0, 1, 0, 1, 0), id="none of them"),
    ],
)
def test_a_value_that_an_end_leaves_out_is_missing(
    context, host, owner_id, left_out, expected, encoding
):
    prompt = Prompt("p-1", [owner_id], AT)
    for _ in range(2):
        body = logs([prompt.start(), end_without(prompt, *left_out)])
        assert partial_of(host.send(body, encoding)) == (0, "")
        assert totals(context) == expected


def test_a_reported_zero_is_a_zero(context, host, owner_id):
    prompt = Prompt("p-1", [owner_id], AT, outcome="cancelled", turns=0, tokens=0)
    host.send_prompts(prompt)
    assert totals(context) == (1, 0, 0, 0, 0, 1)


def test_the_fast_path_distinguishes_ends_with_and_without_values(context, host, owner_id):
    """The first of each kind takes the slow path, the others the fast path."""
    for number in range(8):
        prompt = Prompt(f"p-{number}", [owner_id], AT + timedelta(seconds=number))
        left_out = ((), (READ, WRITTEN), (TURNS,), (WRITTEN, TURNS))[number % 4]
        host.send(logs([prompt.start(), end_without(prompt, *left_out)]))
    assert totals(context) == (8, 4000, 4, 20, 4, 8)


@pytest.mark.parametrize(
    ("missing", "outcome", "expected"),
    [
        pytest.param((), "completed", (2, 2000, 0, 10, 0, 2), id="both counters came"),
        pytest.param(METRICS[:1], "completed", (2, 0, 2, 10, 0, 2), id="no tokens came"),
        pytest.param(METRICS[1:], "completed", (2, 2000, 0, 0, 2, 2), id="no turns came"),
        pytest.param(METRICS, "limit", (2, 0, 2, 0, 2, 2), id="neither came of prompts at a limit"),
        pytest.param(
            METRICS, "cancelled", (2, 0, 0, 0, 0, 2), id="prompts cancelled before any answer"
        ),
    ],
)
def test_a_value_without_a_counter_is_missing(context, host, owner_id, missing, outcome, expected):
    prompts = [Prompt(f"p-{at}", [owner_id], AT, outcome=outcome) for at in range(2)]
    interval = Interval(AT, AT + timedelta(minutes=10))
    body = metrics(prompts, interval, owner="owner-1", environment=ENVIRONMENT)
    (scope,) = body.resource_metrics[0].scope_metrics
    kept = [metric for metric in scope.metrics if metric.name not in missing]
    del scope.metrics[:]
    scope.metrics.extend(kept)
    assert partial_of(host.send(body)) == (0, "")
    assert totals(context, source=EvidenceSource.COUNTERS) == expected
