"""Creating environments and rollouts, and the forms of their names."""

import re
from dataclasses import replace

from control_plane.commands.changes import (
    Change,
    Decision,
    Note,
    Unchanged,
    bound_by_policy,
    change,
    check_reason,
    commit,
    put_rollout,
    shadow_wave,
)
from control_plane.commands.refusals import rule_violated
from control_plane.context import Context
from control_plane.errors import InvalidField, RuleViolated, StateConflict
from control_plane.state import Action, Actor, Environment
from reducer.catalogue import CATALOGUE
from reducer.rollout.state import EvidenceSource, Rollout

_ENVIRONMENT = re.compile(r"[a-z0-9-]{1,48}")
_GUARD = re.compile(r"[a-z0-9_]{1,48}")
_KEY_BYTES = 32
_SALT_BYTES = 16
MAX_PINS = 16


def check_environment_name(name: str) -> str:
    """Return the name.

    Raises:
        InvalidField: it does not have an environment name's form.
    """
    if _ENVIRONMENT.fullmatch(name) is None:
        raise InvalidField(
            f"an environment is named by 1 to 48 of a-z, 0-9 and '-', not {name[:64]!r}",
            pointer="/environment",
        )
    return name


def check_guard_name(name: str) -> str:
    """Return the name.

    Raises:
        InvalidField: it does not have a guard name's form.
        RuleViolated: no guard of this name is in the catalogue.
    """
    if _GUARD.fullmatch(name) is None:
        raise InvalidField(
            f"a guard is named by 1 to 48 of a-z, 0-9 and '_', not {name[:64]!r}", pointer="/guard"
        )
    if name not in CATALOGUE:
        raise RuleViolated(
            f"guard {name!r} is not in the catalogue; the guards are {', '.join(sorted(CATALOGUE))}"
        )
    return name


def check_version_pin(pin: tuple[str, ...]) -> tuple[str, ...]:
    """Return the pinned versions, sorted and without repeats.

    Raises:
        InvalidField: there is none, there are too many, or one is blank or too long.
    """
    if not 1 <= len(pin) <= MAX_PINS:
        raise InvalidField(
            f"version_pin names 1 to {MAX_PINS} service.version values, not {len(pin)}",
            pointer="/version_pin",
        )
    for at, version in enumerate(pin):
        if not 1 <= len(version) <= 64 or not version.isprintable() or version != version.strip():
            raise InvalidField(
                f"a service.version has 1 to 64 printable characters, not {version[:80]!r}",
                pointer=f"/version_pin/{at}",
            )
    return tuple(sorted(set(pin)))


def new_environment(context: Context, name: str, *, requires: tuple[str, ...]) -> Environment:
    """Return an environment with keys of its own, not committed yet."""
    return Environment(
        name=name,
        pseudonym_key=context.randomness(_KEY_BYTES).hex(),
        tag_key=context.randomness(_KEY_BYTES).hex(),
        requires=requires,
    )


def new_salt(context: Context) -> str:
    """Return the salt of a new rollout, hexadecimal."""
    return context.randomness(_SALT_BYTES).hex()


def create_environment(
    context: Context, name: str, *, requires: tuple[str, ...] | None, actor: Actor, reason: str
) -> tuple[Environment, bool]:
    """Create an environment with keys of its own; answer it and whether it is new.

    `requires` adds to what the policy requires. Creating one that exists with the same
    requirements changes nothing.

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
    named = None if requires is None else tuple(sorted(set(requires)))
    while True:
        found = context.environments.load(name)
        if found is not None:
            if named is not None and named != found.requires:
                raise StateConflict(
                    f"environment {name} exists and requires {list(found.requires)}; what it "
                    "requires is set once, when it is created"
                )
            return found, False
        _check_required(context, name, named or ())
        created = new_environment(context, name, requires=named or ())
        note = Note(actor, Action.ENVIRONMENT_CREATED, name, reason)
        if commit(context, None, Change(created, (), note, None)):
            stored = context.environments.load(name)
            assert stored is not None  # it was committed just now, and nothing deletes one
            return stored, True


def _check_required(context: Context, name: str, required: tuple[str, ...]) -> None:
    """Check that what a new environment requires is there: then none can require each other."""
    unknown = [each for each in required if context.environments.load(each) is None]
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
    """Create a rollout in shadow, its shadow wave open; answer it and whether it is new.

    Raises:
        StateConflict: the rollout exists with another pin, which a new wave changes in shadow, or
            with another source of evidence, which is set once.
    """
    check_guard_name(guard)
    reason = check_reason(reason)
    pin = check_version_pin(version_pin)

    def decide(before: Environment) -> Decision[tuple[Rollout, bool]]:
        held = context.environments.rollout(environment, guard)
        if held is not None:
            if held.evidence_source is not evidence_source:
                raise StateConflict(
                    f"the rollout exists with evidence_source {held.evidence_source}, which is set "
                    f"once, not {evidence_source}; another environment can have another source"
                )
            if held.version_pin != pin:
                raise StateConflict(
                    f"the rollout exists with version_pin {list(held.version_pin)}; start a wave "
                    "with POST .../waves to narrow it, or in shadow to change it"
                )
            return Unchanged((bound_by_policy(context, held), False))
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
