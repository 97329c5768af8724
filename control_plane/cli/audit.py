"""`guardwave audit`: checks of the audit chains, read from the store itself."""

import click

from guardwave.control_plane.cli.token import store_context
from guardwave.control_plane.core.errors import StateConflict
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.loading import load_environment
from guardwave.control_plane.stores.audit import verify


@click.group()
def audit() -> None:
    """Check the audit chains."""


@audit.command(name="verify")
@click.argument("environments", nargs=-1)
def verify_chains(environments: tuple[str, ...]) -> None:
    """Recompute each environment's chain; an edit, drop or swap is reported and ends with 1."""
    with store_context() as context:
        names = environments or context.environments.names()
        unbroken = [_is_unbroken(context, name) for name in names]
    if not all(unbroken):
        raise StateConflict(
            f"{unbroken.count(False)} of {len(unbroken)} chains are broken: keep this store "
            "as it is, and compare it with a backup"
        )


def _is_unbroken(context: Context, name: str) -> bool:
    environment = load_environment(context, name)
    chain = context.environments.audit_chain(name)
    fault = verify(chain, head=environment.head)
    state = "unbroken" if fault is None else f"broken at {fault.place}: {fault.sentence}"
    click.echo(f"{name}: {len(chain)} entries, {state}")
    return fault is None
