"""Records without an owner count once each; two of one millisecond stay distinct."""

from datetime import timedelta
from itertools import product

import pytest

from tests.support.hosts import Event, Prompt, logs, partial_of
from tests.support.worlds import ENVIRONMENT, GUARD, NOW, VERSION

AT = NOW - timedelta(hours=2)


def evaluation(mode: str) -> Event:
    attributes = {"feature_flag.key": f"agent.guard.{GUARD}", "feature_flag.result.variant": mode}
    return Event("feature_flag.evaluation", AT, attributes)


def loop(kind: str) -> Event:
    attributes = {"agent.guard.prompt.id": "p-1", "agent.guard.loop.type": kind}
    return Event("agent.guard.loop_detected", AT, attributes)


def counted(context) -> int:
    return sum(context.evidence.counters(ENVIRONMENT, AT.date()).values())


def test_flag_evaluations_of_one_moment_count_for_each_process_and_mode(context, host):
    for _ in range(2):
        for instance, mode in product(("i-1", "i-2", "i-3"), ("shadow", "warn")):
            request = logs([evaluation(mode)], resource={"service.instance.id": instance})
            assert partial_of(host.send(request)) == (0, "")
    assert counted(context) == 6
    assert context.evidence.health(ENVIRONMENT)["duplicate"] == 6


@pytest.mark.parametrize(
    "resource",
    [
        pytest.param({"service.instance.id": "host-2"}, id="of another process"),
        pytest.param({"service.name": "another-host"}, id="of another service"),
        pytest.param({"service.namespace": "agents"}, id="of another namespace"),
        pytest.param({"service.version": "9.9.9"}, id="of another version"),
    ],
)
@pytest.mark.parametrize(
    "event",
    [
        pytest.param(evaluation("shadow"), id="a flag evaluation"),
        pytest.param(loop("invalid_tool_params"), id="a loop"),
        pytest.param(Prompt("p-1", [], AT).start(), id="a start without an id"),
        pytest.param(Prompt("p-1", [], AT).transition(1, "tracked"), id="a transition"),
    ],
)
def test_the_same_words_of_one_moment_are_another_record(context, host, resource, event):
    named = {"service.version": VERSION, **resource}
    for _ in range(2):
        host.send(logs([event]))
        host.send(logs([event], version=str(named["service.version"]), resource=resource))
    assert counted(context) == 2


def test_two_loops_of_one_moment_are_two(context, host):
    kinds = ("invalid_tool_params", "identical_tool_call")
    for _ in range(2):
        host.send(logs([loop(kind) for kind in kinds]))
    assert counted(context) == 2
