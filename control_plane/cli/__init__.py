"""The command `guardwave`. Commands load when they are called; most of them need the server."""

import importlib
from typing import NamedTuple

import click

from control_plane import __version__
from control_plane.errors import GuardwaveError, StartError


class Late(NamedTuple):
    """A command: the module it lives in, its name there, and what help says of it."""

    module: str
    name: str
    about: str


_COMMANDS = {
    "serve": Late("control_plane.cli.serve", "serve", "Serve pages, API and OTLP."),
    "worker": Late("control_plane.cli.serve", "worker", "Run the worker alone."),
    "demo": Late("control_plane.cli.demo", "demo", "Run the whole loop, days passing in seconds."),
    "token": Late("control_plane.cli.token", "token", "Create, list and revoke tokens."),
    "conformance": Late(
        "control_plane.cli.conformance", "conformance", "Run vectors against the built-in guards."
    ),
    "replay-guard": Late(
        "control_plane.cli.replay_guard", "replay_guard", "Run recorded receipts through a guard."
    ),
    "audit": Late("control_plane.cli.audit", "audit", "Check the audit chains."),
    "evidence": Late(
        "control_plane.cli.evidence", "evidence", "Export evidence, or import it elsewhere."
    ),
    "analyze": Late("control_plane.cli.analyze", "analyze", "Judge a file of owners offline."),
    "plan": Late("control_plane.cli.plan", "plan", "Say what a wave could prove before it starts."),
    "replay": Late("control_plane.cli.replay", "replay", "Make a verdict again from its bundle."),
}


class LateGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, without importing any."""
        return sorted([*super().list_commands(ctx), *_COMMANDS])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, importing the module that it lives in."""
        found = _COMMANDS.get(cmd_name)
        if found is None:
            return super().get_command(ctx, cmd_name)
        try:
            command: click.Command = getattr(importlib.import_module(found.module), found.name)
        except ModuleNotFoundError as missing:
            raise click.ClickException(
                f"`guardwave {cmd_name}` needs the server ({missing.name} is missing); "
                "install it from a checkout with pip install '.[server]'"
            ) from missing
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what help says of the commands, without importing any."""
        own = {name: command.get_short_help_str() for name, command in self.commands.items()}
        late = {name: command.about for name, command in _COMMANDS.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted((own | late).items()))

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; an error that names its remedy is one line on stderr, exit code 1."""
        try:
            return super().invoke(ctx)
        except GuardwaveError as error:
            click.echo(f"guardwave: {error}", err=True)
            ctx.exit(error.exit_code if isinstance(error, StartError) else 1)


@click.group(cls=LateGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(version)s")
def main() -> None:
    """The rollout control plane for the guards that keep AI agents from looping."""


@main.command()
def version() -> None:
    """Print the version."""
    click.echo(__version__)
