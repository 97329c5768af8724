"""`guardwave token`: credentials, made and revoked at the store itself."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.table import Column, Table

from control_plane.access import create_token, revoke_token
from control_plane.context import Context
from control_plane.errors import StoreStartError
from control_plane.settings import Settings
from control_plane.startup import open_context, open_store
from control_plane.stores.embedded import EmbeddedServer
from reducer.vocabulary import Role

_PIPE_WIDTH = 200


@contextmanager
def store_context(*, may_be_new: bool = False) -> Iterator[Context]:
    """Open the store of the settings; an embedded one that nobody runs is run meanwhile.

    Raises:
        StoreStartError: there is no embedded store yet, and none is to be made.
    """
    settings = Settings.from_env(os.environ)
    if settings.redis_url is not None:
        yield open_context(settings, open_store(settings))
        return
    is_new = not settings.data_dir.exists()
    if is_new and not may_be_new:
        raise StoreStartError(
            f"there is no store in {settings.data_dir.absolute()}; go to where the server was "
            "started, or set GUARDWAVE_DATA to its directory"
        )
    with EmbeddedServer.start(settings.data_dir):
        if is_new:
            click.echo(
                f"note: made a new store in {settings.data_dir.absolute()}; a server that runs "
                "elsewhere does not see it",
                err=True,
            )
        client = open_store(settings)
        try:
            yield open_context(settings, client)
        finally:
            client.close()


@click.group()
def token() -> None:
    """Create, list and revoke tokens."""


@token.command()
@click.option("--role", type=click.Choice([role.value for role in Role]), required=True)
@click.option("--environment", metavar="NAME", help="Needed for every role but admin.")
@click.option("--trusted", is_flag=True, help="Records of this ingest token may be evidence.")
@click.option("--name", default="", metavar="TEXT", help="What the audit calls its holder.")
def create(role: str, environment: str | None, *, trusted: bool, name: str) -> None:
    """Create a token and print it, the only time it can be seen."""
    with store_context(may_be_new=True) as context:
        known = context.environments.names()
        if environment is not None and environment not in known:
            click.echo(
                f"note: there is no environment {environment!r} yet; there is "
                f"{', '.join(known) or 'none at all'}",
                err=True,
            )
        text = create_token(
            context, role=Role(role), environment=environment, is_trusted=trusted, name=name
        )
    click.echo(text)


@token.command("list")
def list_tokens() -> None:
    """List all tokens, without their secrets."""
    with store_context() as context:
        found = context.credentials.tokens()
    # An id that is cut off could not be revoked.
    whole = Column("id", no_wrap=True, min_width=12)
    table = Table(whole, "name", "role", "environment", "trusted", "created", "state", box=None)
    for each in found:
        table.add_row(
            each.id,
            each.name,
            each.role,
            each.environment or "all",
            "yes" if each.is_trusted else "no",
            each.created_at.strftime("%Y-%m-%d %H:%M UTC"),
            "revoked" if each.is_revoked else "good",
        )
    # A pipe gets one line a token, whatever the width of a terminal would be.
    Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH).print(table)


@token.command()
@click.argument("token_id")
def revoke(token_id: str) -> None:
    """Revoke a token; every server refuses it within a second."""
    with store_context() as context:
        revoke_token(context, token_id)
    click.echo(f"{token_id} is revoked", err=True)
