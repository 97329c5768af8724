"""Delayed invariants of a host that numbers no transitions: they count, are shown, never latch."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from control_plane.clock import fixed
from control_plane.context import Context
from control_plane.jobs.deciding import decide_overdue
from control_plane.jobs.gathering import gather
from control_plane.queries.violations import recorded_violations
from control_plane.state import Violation
from control_plane.stores.evidence_events import UNTRUSTED_VIOLATION
from reducer.vocabulary import Gate, Invariant, Mode
from tests.control_plane.hosts import Host
from tests.control_plane.ingest.qwen import (
    Json,
    Receiver,
    attribute,
    cases,
    changed,
    of_guard,
    unwarned,
)
from tests.control_plane.latches import is_latched
from tests.control_plane.worlds import ENVIRONMENT, GUARD, context_over

ENFORCE = cases()["enforce-repeat_fail"]


def with_unreliable_input(item: Json) -> Json:
    """Let unreliable input come with the first decision, and the warning as it did."""
    if attribute(item, "decision") != "tracked":
        return item
    reset = changed(item, "decision", {"stringValue": "reset"})
    return changed(reset, "reset_reason", {"stringValue": "unreliable_input"})


def untouched(item: Json) -> Json:
    return item


EACH = pytest.mark.parametrize(
    ("edit", "switches", "invariant"),
    [
        pytest.param(unwarned, False, Invariant.STOP_WITHOUT_WARN, id="a stop without a warning"),
        pytest.param(
            with_unreliable_input,
            False,
            Invariant.ENFORCED_ON_UNRELIABLE_INPUT,
            id="a stop after unreliable input",
        ),
        pytest.param(untouched, True, Invariant.TREATMENT_SWITCHED, id="two modes"),
    ],
)

Edit = Callable[[Json], Json | None]


def sent(store, edit: Edit, *, switches: bool, is_trusted: bool = True) -> tuple[Receiver, Context]:
    """Send a recorded session, edited; return a context of five minutes later, too."""
    receiver = Receiver(store, ENFORCE)
    receiver.host = Host(receiver.context, is_trusted=is_trusted)
    receiver.send_all(ENFORCE.edited_logs(of_guard(edit)))
    if switches:
        receiver.ids = [receiver.id_for("owner-a", mode=Mode.OFF)]
        receiver.send_all([body for body in ENFORCE.bodies if body.signal == "traces"])
    return receiver, context_over(store, clock=fixed(receiver.now + timedelta(minutes=5)))


def shown(context: Context) -> list[tuple[Invariant, bool]]:
    found: tuple[Violation, ...]
    found, _ = recorded_violations(context, ENVIRONMENT, GUARD, before=None, limit=100)
    return [(each.invariant, each.latches) for each in found]


@EACH
def test_what_breaks_a_delayed_invariant_is_shown_and_latches_nothing(
    store, edit, switches, invariant
):
    _, later = sent(store, edit, switches=switches)
    for _ in range(2):
        decide_overdue(later, ENVIRONMENT)
    assert shown(later) == [(invariant, False)]
    assert not is_latched(later)
    assert later.suspects.overdue(ENVIRONMENT, later.clock.now() + timedelta(days=1)) == ()


@EACH
def test_it_counts_in_the_gate_of_its_wave_once(store, edit, switches, invariant):
    _, later = sent(store, edit, switches=switches)
    decide_overdue(later, ENVIRONMENT)
    rollout = later.environments.rollout(ENVIRONMENT, GUARD)
    assert rollout is not None
    wave = later.environments.wave(ENVIRONMENT, GUARD, rollout.wave)
    assert wave is not None
    found = gather(later, rollout, wave, gate=Gate.SHADOW)
    assert found.gathered.violations == {invariant: 1}


@EACH
def test_what_a_stranger_told_of_it_is_counted_and_not_recorded(store, edit, switches, invariant):
    _, later = sent(store, edit, switches=switches, is_trusted=False)
    decide_overdue(later, ENVIRONMENT)
    assert shown(later) == []
    assert later.evidence.health(ENVIRONMENT)[f"{UNTRUSTED_VIOLATION}:{invariant}"] == 1
