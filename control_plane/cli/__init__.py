"""Command line: `guardwave` and its commands, each imported when it is called."""

import importlib
from typing import NamedTuple

import click

from guardwave import __version__
from guardwave.control_plane.core.errors import GuardwaveError, StartError

__all__ = ["LazyCommand", "LazyGroup", "main", "version"]


class LazyCommand(NamedTuple):
    """A command that is not imported yet: its module in this package, and its help text."""

    module: str
    help: str


_COMMANDS = {
    "serve": LazyCommand("serve", "Serve pages, API and OTLP."),
    "worker": LazyCommand("serve", "Run the worker alone."),
    "demo": LazyCommand("demo", "Run the whole loop, days passing in seconds."),
    "token": LazyCommand("token", "Create, list and revoke tokens."),
    "conformance": LazyCommand("conformance", "Run vectors against the built-in guards."),
    "replay-guard": LazyCommand("replay_guard", "Run recorded receipts through a guard."),
    "audit": LazyCommand("audit", "Check the audit chains."),
    "evidence": LazyCommand("evidence", "Export evidence, or import it elsewhere."),
    "analyze": LazyCommand("analyze", "Judge a file of owners offline."),
    "plan": LazyCommand("plan", "Plan what a wave could prove before it starts."),
    "replay": LazyCommand("replay", "Make a verdict again from its bundle."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, without importing any."""
        return sorted([*super().list_commands(ctx), *_COMMANDS])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, and import its module."""
        lazy = _COMMANDS.get(cmd_name)
        if lazy is None:
            return super().get_command(ctx, cmd_name)
        try:
            module = importlib.import_module(f"{__name__}.{lazy.module}")
        except ModuleNotFoundError as missing:
            raise click.ClickException(
                f"`guardwave {cmd_name}` needs the server ({missing.name} is missing); "
                "install it from a checkout with pip install '.[server]'"
            ) from missing
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands into the help, without importing any."""
        imported = {name: command.get_short_help_str() for name, command in self.commands.items()}
        lazy = {name: command.help for name, command in _COMMANDS.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted((imported | lazy).items()))

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; an error that names its remedy is one line on stderr, exit code 1."""
        try:
            return super().invoke(ctx)
        except GuardwaveError as error:
            click.echo(f"guardwave: {error}", err=True)
            ctx.exit(error.exit_code if isinstance(error, StartError) else 1)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(version)s")
def main() -> None:
    """The rollout control plane for the guards that keep AI agents from looping."""


@main.command()
def version() -> None:
    """Print the version."""
    click.echo(__version__)
