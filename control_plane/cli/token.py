"""`guardwave token`: credentials, created and revoked in the store itself."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.table import Column, Table

from guardwave.control_plane.core.errors import StoreStartError
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.rollouts.access import create_token, revoke_token
from guardwave.control_plane.rollouts.context import Context, open_context, open_store
from guardwave.control_plane.stores.server import EmbeddedServer
from guardwave.reducer.vocabulary import Role

_PIPE_WIDTH = 200


@contextmanager
def store_context(*, may_be_new: bool = False) -> Iterator[Context]:
    """Open the store of the settings; run an embedded one for as long as it is open.

    Raises:
        StoreStartError: there is no embedded store yet, and `may_be_new` is False.
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
    # A token cannot be revoked by a shortened id.
    whole_id = Column("id", no_wrap=True, min_width=12)
    table = Table(whole_id, "name", "role", "environment", "trusted", "created", "state", box=None)
    for credential in found:
        table.add_row(
            credential.id,
            credential.name,
            credential.role,
            credential.environment or "all",
            "yes" if credential.is_trusted else "no",
            credential.created_at.strftime("%Y-%m-%d %H:%M UTC"),
            "revoked" if credential.is_revoked else "good",
        )
    # In a pipe no line is wrapped, so that each token has one line.
    Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH).print(table)


@token.command()
@click.argument("token_id")
def revoke(token_id: str) -> None:
    """Revoke a token; every server refuses it within a second."""
    with store_context() as context:
        revoke_token(context, token_id)
    click.echo(f"{token_id} is revoked", err=True)
