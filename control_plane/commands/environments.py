"""Environments: creating them and their rollouts, each idempotently."""

from dataclasses import replace

from guardwave.control_plane.core.errors import StateConflict
from guardwave.control_plane.core.state import Action, Actor, Environment
from guardwave.control_plane.rollouts.changes import (
    Change,
    Decision,
    Note,
    Unchanged,
    change,
    check_reason,
    commit,
    put_rollout,
    shadow_wave,
)
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.loading import with_policy_ceiling
from guardwave.control_plane.rollouts.names import (
    check_environment_name,
    check_guard_name,
    check_version_pin,
    new_environment,
    new_salt,
)
from guardwave.control_plane.rollouts.refusals import rule_violated
from guardwave.reducer.rollout.state import EvidenceSource, Rollout


def create_environment(
    context: Context, name: str, *, requires: tuple[str, ...] | None, actor: Actor, reason: str
) -> tuple[Environment, bool]:
    """Create an environment with its own keys; return it and whether it is new.

    `requires` adds to what the policy requires. An environment that exists with the same
    requirements is returned unchanged.

    Raises:
        InvalidField: a name does not have an environment name's form, or the reason is too short.
        RuleViolated: it would require itself, or one that does not exist.
        StateConflict: it exists and requires others.
    """
    check_environment_name(name)
    reason = check_reason(reason)
    for required in requires or ():
        check_environment_name(required)
    if requires is not None and name in requires:
        raise rule_violated(
            f"{name} cannot require itself: no step could be the first; leave it out",
            pointer="/requires",
        )
    wanted = None if requires is None else tuple(sorted(set(requires)))
    while True:
        found = context.environments.load(name)
        if found is not None:
            if wanted is not None and wanted != found.requires:
                raise StateConflict(
                    f"environment {name} exists and requires {list(found.requires)}; what it "
                    "requires is set once, when it is created"
                )
            return found, False
        _check_required(context, name, wanted or ())
        created = new_environment(context, name, requires=wanted or ())
        note = Note(actor, Action.ENVIRONMENT_CREATED, name, reason)
        if commit(context, None, Change(created, (), note, None)):
            stored = context.environments.load(name)
            assert stored is not None  # it was committed just now, and nothing deletes one
            return stored, True


def _check_required(context: Context, name: str, required: tuple[str, ...]) -> None:
    """Check that every required environment exists, so that no two can require each other."""
    unknown = [other for other in required if context.environments.load(other) is None]
    if unknown:
        raise rule_violated(
            f"{', '.join(unknown)} does not exist, and what {name} requires is set once; create "
            "what is required first, or leave it out",
            pointer="/requires",
        )


def create_rollout(
    context: Context,
    environment: str,
    guard: str,
    *,
    version_pin: tuple[str, ...],
    actor: Actor,
    reason: str,
    evidence_source: EvidenceSource = EvidenceSource.EVENTS,
) -> tuple[Rollout, bool]:
    """Create a rollout in shadow, with an open shadow wave; return it and whether it is new.

    Raises:
        StateConflict: the rollout exists with another pin, which a new wave changes in shadow, or
            with another source of evidence, which is set once.
    """
    check_guard_name(guard)
    reason = check_reason(reason)
    pin = check_version_pin(version_pin)

    def decide(before: Environment) -> Decision[tuple[Rollout, bool]]:
        stored = context.environments.rollout(environment, guard)
        if stored is not None:
            if stored.evidence_source is not evidence_source:
                raise StateConflict(
                    f"the rollout exists with evidence_source {stored.evidence_source}, which is "
                    f"set once, not {evidence_source}; another environment can have another source"
                )
            if stored.version_pin != pin:
                raise StateConflict(
                    f"the rollout exists with version_pin {list(stored.version_pin)}; start a wave "
                    "with POST .../waves to narrow it, or in shadow to change it"
                )
            return Unchanged((with_policy_ceiling(context, stored), False))
        created = Rollout(
            environment=environment,
            guard=guard,
            version_pin=pin,
            salt=new_salt(context),
            evidence_source=evidence_source,
            ceiling_bps=context.policies.of(environment).ceiling_bps,
        )
        note = Note(
            actor, Action.ROLLOUT_CREATED, guard, reason, generation_after=created.generation
        )
        after = replace(before, guards=tuple(sorted((*before.guards, guard))))
        writes = (put_rollout(created), *shadow_wave(context, created))
        return Change(after, writes, note, (created, True))

    return change(context, environment, decide)
