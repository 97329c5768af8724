"""What a harm alarm does: enforce becomes warn, with the numbers in the audit."""

from dataclasses import replace

from control_plane.commands.changes import (
    Change,
    Decision,
    Note,
    Unchanged,
    applied,
    change,
    close_wave,
    put_rollout,
    stored_rollout,
)
from control_plane.context import Context
from control_plane.state import SYSTEM, Action, Environment, HarmLook
from control_plane.stores.environments import Write
from control_plane.stores.incidents import put_harm_look
from reducer.rollout.ladder import Lowered, Refusal
from reducer.vocabulary import Cohort, Mode


def act_on_look(context: Context, environment: str, look: HarmLook) -> HarmLook:
    """Record a look for harm; where it raised an alarm in enforce, lower to warn in one commit.

    A rollout that left the look's wave meanwhile is left as it is, and so is every one where the
    policy leaves an alarm to a person.

    Raises:
        NotFound: no such environment or rollout.
    """

    def decide(before: Environment) -> Decision[HarmLook]:
        rollout = stored_rollout(context, environment, look.guard)
        is_current = rollout.phase is Mode.ENFORCE and rollout.wave == look.wave
        if not is_current:
            return Unchanged(look)
        after = applied(context, rollout, Lowered(Cohort.ENFORCED, Mode.WARN))
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
    told = " ".join(each.sentence for each in look.raised)
    return f"After {look.days} complete days of wave {look.wave}: {told}"
