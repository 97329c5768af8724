"""`guardwave serve` and `guardwave worker`: the server with all its processes, or one worker."""

import logging
import os
import signal
import socket
import threading
from importlib.util import find_spec
from types import FrameType

import click

from guardwave.control_plane.core.errors import StartError
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.jobs.worker import Worker
from guardwave.control_plane.rollouts.access import create_token, make_sign_in_code, parse_token
from guardwave.control_plane.rollouts.context import Context, open_context, open_store
from guardwave.control_plane.server.supervisor import (
    Supervisor,
    check_grpc_port,
    check_port,
    grpc_child,
    grpc_url_of,
    start_store,
    url_of,
    web_child,
    worker_child,
)
from guardwave.control_plane.stores.demo import DemoStore
from guardwave.reducer.vocabulary import Role

FIRST_SIGN_IN = "first sign-in"


@click.command()
@click.option("--grpc", "with_grpc", is_flag=True, help="Also take OTLP over gRPC, on port 4317.")
def serve(*, with_grpc: bool) -> None:
    """Serve pages, API and OTLP, and run the worker, until Ctrl-C."""
    settings = Settings.from_env(os.environ)
    check_port(settings)
    if with_grpc:
        _check_grpc(settings)
    store = start_store(settings)
    supervisor = Supervisor(settings, [], store)
    supervisor.watch_signals()
    try:
        link = _prepare(settings)
        supervisor.children += [web_child(os.environ), worker_child(os.environ)]
        if with_grpc:
            supervisor.children.append(grpc_child(os.environ))
        supervisor.start()
        supervisor.wait_until_ready()
        if with_grpc:
            supervisor.wait_until_listening(settings.grpc_port)
        if not supervisor.stop_asked.is_set():
            click.echo(f"guardwave serves on {url_of(settings)}")
            if with_grpc:
                click.echo(f"guardwave takes OTLP over gRPC on {grpc_url_of(settings)}")
            if link is not None:
                click.echo(f"no token exists yet; sign in once, within 15 minutes, with {link}")
        supervisor.run()
    finally:
        supervisor.stop()


def _check_grpc(settings: Settings) -> None:
    if find_spec("grpc") is None:
        raise StartError("--grpc needs grpcio; install guardwave[grpc]")
    check_grpc_port(settings)


def _prepare(settings: Settings) -> str | None:
    """Check the store before anything listens; return a sign-in link when there is no token yet."""
    client = open_store(settings)
    try:
        if DemoStore(client).mark() is not None:
            raise StartError(
                f"the store at {settings.data_dir} is a demo's, whose clock is not wall time; run "
                "`guardwave demo`, or set GUARDWAVE_DATA to another directory"
            )
        context = open_context(settings, client)
        # By this id web workers notice that the store was emptied.
        context.environments.store_id()
        valid = [token for token in context.credentials.tokens() if not token.is_revoked]
        # Nobody has the secret of a first sign-in, so it is no way in: make another link.
        first = next((token for token in valid if token.name == FIRST_SIGN_IN), None)
        if len(valid) > (first is not None):
            return None
        if not settings.is_loopback:
            raise StartError(
                f"GUARDWAVE_HOST={settings.host} listens beyond this machine and no token exists; "
                "create one with `guardwave token create --role admin` first"
            )
        if first is not None:
            return link_for(context, settings, first.id)
        return sign_in_link(context, settings, name=FIRST_SIGN_IN)
    finally:
        client.close()


def sign_in_link(context: Context, settings: Settings, *, name: str) -> str:
    """Return a link that signs in once as a new admin token, whose secret nobody has."""
    parts = parse_token(create_token(context, role=Role.ADMIN, environment=None, name=name))
    assert parts is not None  # `create_token` made it
    return link_for(context, settings, parts[0])


def link_for(context: Context, settings: Settings, token_id: str) -> str:
    """Return a link that signs in as this token, once, within 15 minutes."""
    return f"{url_of(settings)}/sign-in?code={make_sign_in_code(context, token_id)}"


@click.command()
def worker() -> None:
    """Run the worker alone: it seals days, evaluates gates and carries out promotions."""
    logging.basicConfig(format="%(levelname)s %(name)s %(message)s", level=logging.INFO)
    settings = Settings.from_env(os.environ)
    context = open_context(settings, open_store(settings))
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    Worker(context, holder=f"{socket.gethostname()}:{os.getpid()}").run(stop)
