"""`guardwave audit`: what can be said of the audit chains, at the store itself."""

import click

from control_plane.cli.token import store_context
from control_plane.commands.changes import load_environment
from control_plane.context import Context
from control_plane.errors import StateConflict
from control_plane.stores.audit import verify


@click.group()
def audit() -> None:
    """Check the audit chains."""


@audit.command(name="verify")
@click.argument("environments", nargs=-1)
def verify_chains(environments: tuple[str, ...]) -> None:
    """Recompute each environment's chain; any edit, drop or swap is told and ends with 1."""
    with store_context() as context:
        whole = [_is_whole(context, name) for name in environments or context.environments.names()]
    if not all(whole):
        raise StateConflict(
            f"{whole.count(False)} of {len(whole)} chains are broken: keep this store as it is, "
            "and compare it with a backup"
        )


def _is_whole(context: Context, name: str) -> bool:
    environment = load_environment(context, name)
    chain = context.environments.audit_chain(name)
    fault = verify(chain, head=environment.head)
    said = "unbroken" if fault is None else f"broken at {fault.place}: {fault.sentence}"
    click.echo(f"{name}: {len(chain)} entries, {said}")
    return fault is None
