"""Delayed invariants without transition numbers: they count and are shown, but never latch."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from guardwave.control_plane.core.clock import fixed_clock
from guardwave.control_plane.core.state import Violation
from guardwave.control_plane.jobs.decide import decide_overdue
from guardwave.control_plane.jobs.gather import gather
from guardwave.control_plane.queries.violations import recorded_violations
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.evidence.delta.request import UNTRUSTED_VIOLATION
from guardwave.reducer.vocabulary import Gate, Invariant, Mode
from tests.support.hosts import Host
from tests.support.latches import is_latched
from tests.support.otlp.qwen import Json, Receiver, attribute, cases, changed, of_guard, unwarned
from tests.support.worlds import ENVIRONMENT, GUARD, context_over

ENFORCE = cases()["enforce-repeat_fail"]


def with_unreliable_input(item: Json) -> Json:
    """Let unreliable input come with the first decision, and the warning as it did."""
    if attribute(item, "decision") != "tracked":
        return item
    reset = changed(item, "decision", {"stringValue": "reset"})
    return changed(reset, "reset_reason", {"stringValue": "unreliable_input"})


def unedited(item: Json) -> Json:
    return item


CASES = pytest.mark.parametrize(
    ("edit", "switches", "invariant"),
    [
        pytest.param(unwarned, False, Invariant.STOP_WITHOUT_WARN, id="a stop without a warning"),
        pytest.param(
            with_unreliable_input,
            False,
            Invariant.ENFORCED_ON_UNRELIABLE_INPUT,
            id="a stop after unreliable input",
        ),
        pytest.param(unedited, True, Invariant.TREATMENT_SWITCHED, id="two modes"),
    ],
)

Edit = Callable[[Json], Json | None]


def send_session(
    store, edit: Edit, *, switches: bool, is_trusted: bool = True
) -> tuple[Receiver, Context]:
    """Send an edited recorded session; return the receiver and a context of five minutes later."""
    receiver = Receiver(store, ENFORCE)
    receiver.host = Host(receiver.context, is_trusted=is_trusted)
    receiver.send_all(ENFORCE.edited_logs(of_guard(edit)))
    if switches:
        receiver.ids = [receiver.id_for("owner-a", mode=Mode.OFF)]
        receiver.send_all([body for body in ENFORCE.bodies if body.signal == "traces"])
    return receiver, context_over(store, clock=fixed_clock(receiver.now + timedelta(minutes=5)))


def shown(context: Context) -> list[tuple[Invariant, bool]]:
    found: tuple[Violation, ...]
    found, _ = recorded_violations(context, ENVIRONMENT, GUARD, before=None, limit=100)
    return [(finding.invariant, finding.latches) for finding in found]


@CASES
def test_a_broken_delayed_invariant_is_shown_and_does_not_latch(store, edit, switches, invariant):
    _, later = send_session(store, edit, switches=switches)
    for _ in range(2):
        decide_overdue(later, ENVIRONMENT)
    assert shown(later) == [(invariant, False)]
    assert not is_latched(later)
    assert later.suspects.overdue(ENVIRONMENT, later.clock.now() + timedelta(days=1)) == ()


@CASES
def test_a_violation_counts_once_in_the_gate_of_its_wave(store, edit, switches, invariant):
    _, later = send_session(store, edit, switches=switches)
    decide_overdue(later, ENVIRONMENT)
    rollout = later.environments.rollout(ENVIRONMENT, GUARD)
    assert rollout is not None
    wave = later.environments.wave(ENVIRONMENT, GUARD, rollout.wave)
    assert wave is not None
    found = gather(later, rollout, wave, gate=Gate.SHADOW)
    assert found.gathered.violations == {invariant: 1}


@CASES
def test_a_violation_from_a_stranger_is_counted_and_not_recorded(store, edit, switches, invariant):
    _, later = send_session(store, edit, switches=switches, is_trusted=False)
    decide_overdue(later, ENVIRONMENT)
    assert shown(later) == []
    assert later.evidence.health(ENVIRONMENT)[f"{UNTRUSTED_VIOLATION}:{invariant}"] == 1
