"""The command `guardwave`. A base install has `version` alone; the server's commands load late."""

import importlib

import click

from control_plane import __version__
from control_plane.errors import GuardwaveError, StartError

_SERVER_COMMANDS = {
    "serve": ("control_plane.cli.serve", "serve"),
    "worker": ("control_plane.cli.serve", "worker"),
    "demo": ("control_plane.cli.demo", "demo"),
    "token": ("control_plane.cli.token", "token"),
    "audit": ("control_plane.cli.audit", "audit"),
}


class LateGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, without importing any."""
        return sorted([*super().list_commands(ctx), *_SERVER_COMMANDS])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, importing the module that it lives in."""
        found = _SERVER_COMMANDS.get(cmd_name)
        if found is None:
            return super().get_command(ctx, cmd_name)
        module, name = found
        try:
            command: click.Command = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as missing:
            raise click.ClickException(
                f"`guardwave {cmd_name}` needs the server ({missing.name} is missing); "
                "install guardwave[server]"
            ) from missing
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; an error that names its remedy is one line on stderr, exit code 1."""
        try:
            return super().invoke(ctx)
        except GuardwaveError as error:
            click.echo(f"guardwave: {error}", err=True)
            ctx.exit(error.exit_code if isinstance(error, StartError) else 1)


@click.group(cls=LateGroup, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """The rollout control plane for the guards that keep AI agents from looping."""


@main.command()
def version() -> None:
    """Print the version."""
    click.echo(__version__)
