"""Hosts before contract 1, scope version 0.1.0, whose sequences begin at 0."""

from datetime import timedelta

import pytest

from guardwave.control_plane.core.otlp_request import Encoding
from tests.support.hosts import Prompt, logs, partial_of
from tests.support.worlds import ENVIRONMENT, GUARD, NOW

AT = NOW - timedelta(hours=2)
EARLY, SETTLED = "0.1.0", "1"
FIRST = {EARLY: 0, SETTLED: 1}
EACH_ENCODING = pytest.mark.parametrize("encoding", list(Encoding))


def prompt_request(name: str, owner_id: str, version: str, *, first: int):
    """Return a prompt of two transitions by a host of that version, numbered from `first` on."""
    prompt = Prompt(name, [owner_id], AT, decisions=("tracked", "tracked"))
    transitions = [prompt.transition(sequence, "tracked") for sequence in (first, first + 1)]
    request = logs([prompt.start(), *transitions, prompt.end()])
    request.resource_logs[0].scope_logs[0].scope.version = version
    return request


def covered(context) -> tuple[int, int]:
    """Return how many prompts ended, and of how many all is known."""
    (row,) = context.evidence.owner_days(ENVIRONMENT, GUARD, 1, [AT.date()])
    return row.ended, row.covered


@EACH_ENCODING
def test_sequences_from_0_are_covered_and_count_once(context, host, owner_id, encoding):
    for _ in range(2):
        answer = host.send(prompt_request("p-1", owner_id, EARLY, first=0), encoding)
        assert partial_of(answer) == (0, "")
        assert covered(context) == (1, 1)


@EACH_ENCODING
@pytest.mark.parametrize("version", [EARLY, SETTLED])
def test_sequences_that_begin_elsewhere_are_not_covered(context, host, owner_id, encoding, version):
    host.send(prompt_request("p-1", owner_id, version, first=1 - FIRST[version]), encoding)
    assert covered(context) == (1, 0)


@pytest.mark.parametrize("order", [[EARLY, SETTLED], [SETTLED, EARLY]], ids=" then ".join)
def test_the_same_words_of_a_host_of_the_other_version_are_read_its_own_way(
    context, host, owner_id, order
):
    for number, version in enumerate(2 * order):
        host.send(prompt_request(f"p-{number}", owner_id, version, first=FIRST[version]))
    assert covered(context) == (4, 4)
