"""Harm alarms: a raised alarm lowers enforce to warn, with its numbers in the audit."""

from dataclasses import replace

from guardwave.control_plane.core.state import SYSTEM, Action, Environment, HarmLook
from guardwave.control_plane.rollouts.changes import (
    Change,
    Decision,
    Note,
    Unchanged,
    apply_event,
    change,
    close_wave,
    put_rollout,
)
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.loading import stored_rollout
from guardwave.control_plane.stores.environments import Write
from guardwave.control_plane.stores.incidents import put_harm_look
from guardwave.reducer.rollout.ladder import ModeLowered, Refusal
from guardwave.reducer.vocabulary import Cohort, Mode


def act_on_look(context: Context, environment: str, look: HarmLook) -> HarmLook:
    """Record a look for harm; if it raised an alarm in enforce, lower to warn in the same commit.

    Nothing is lowered when the rollout has left the look's wave, or when the policy leaves alarms
    to a person.

    Raises:
        NotFound: no such environment or rollout.
    """

    def decide(before: Environment) -> Decision[HarmLook]:
        rollout = stored_rollout(context, environment, look.guard)
        is_current = rollout.phase is Mode.ENFORCE and rollout.wave == look.wave
        if not is_current:
            return Unchanged(look)
        after = apply_event(context, rollout, ModeLowered(Cohort.ENFORCED, Mode.WARN))
        if isinstance(after, Refusal) or after is rollout:
            return Unchanged(look)
        acted = replace(look, lowered=True)
        writes: tuple[Write, ...] = (
            put_rollout(after),
            *close_wave(context, rollout),
            put_harm_look(environment, acted),
        )
        note = Note(
            SYSTEM,
            Action.HARM_ALARM,
            f"{look.guard}: {Cohort.ENFORCED} {rollout.phase} -> {Mode.WARN}",
            _reason(look),
            generation_before=rollout.generation,
            generation_after=after.generation,
        )
        return Change(before, writes, note, acted)

    lowers = context.policies.of(environment).alarms.lowers_enforce
    acted = change(context, environment, decide) if look.raised and lowers else look
    if not acted.lowered:
        context.incidents.record_harm_look(environment, acted)
    return acted


def _reason(look: HarmLook) -> str:
    sentences = " ".join(metric.sentence for metric in look.raised)
    return f"After {look.days} complete days of wave {look.wave}: {sentences}"
