"""Names of environments, guards and versions: their forms, and the keys of a new environment."""

import re

from guardwave.control_plane.core.errors import InvalidField, RuleViolated
from guardwave.control_plane.core.state import Environment
from guardwave.control_plane.rollouts.context import Context
from guardwave.reducer.catalogue import CATALOGUE

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
    """Return an environment with new keys, not committed yet."""
    return Environment(
        name=name,
        pseudonym_key=context.randomness(_KEY_BYTES).hex(),
        tag_key=context.randomness(_KEY_BYTES).hex(),
        requires=requires,
    )


def new_salt(context: Context) -> str:
    """Return the salt of a new rollout, hexadecimal."""
    return context.randomness(_SALT_BYTES).hex()
