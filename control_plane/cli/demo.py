"""`guardwave demo`: the whole loop on a fast clock, its fleet, and a misbehaving owner."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib import resources

import click

from guardwave.control_plane.cli.serve import sign_in_link
from guardwave.control_plane.client import Assignments
from guardwave.control_plane.core.clock import from_ns, to_ns
from guardwave.control_plane.core.errors import StartError, StoreUnavailable
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.core.state import Evaluation, EvaluationStatus
from guardwave.control_plane.demo import bootstrap, files, misbehave
from guardwave.control_plane.demo.fleet import TICK_S, Host, Simulation
from guardwave.control_plane.demo.story import DAY_S, GUARD, VERSION
from guardwave.control_plane.rollouts.context import Context, clock_of, open_context, open_store
from guardwave.control_plane.server.supervisor import (
    Child,
    Supervisor,
    check_port,
    start_store,
    url_of,
    web_child,
    worker_child,
)
from guardwave.control_plane.stores.demo import DemoMark, DemoStore

# A day passes in this many real seconds: seven of them, sealed, in about a minute.
REAL_SECONDS_A_DAY = 8
SPEED = DAY_S / REAL_SECONDS_A_DAY
_ENVIRONMENTS = (bootstrap.INTERNAL, bootstrap.PUBLIC)
_CHECK_EVERY_S = 1.0
DEFAULT_DATA = "guardwave-demo"


@click.group(invoke_without_command=True)
@click.pass_context
def demo(ctx: click.Context) -> None:
    """Run the whole loop: a simulated fleet, its history, a live enforce wave, days in seconds."""
    if ctx.invoked_subcommand is None:
        _run(Settings.from_env(_demo_environment(os.environ)))


def _demo_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the demo's policy and directory where it names none."""
    policy = resources.files("guardwave.control_plane.demo").joinpath("policy.toml")
    return {"GUARDWAVE_POLICY": str(policy), "GUARDWAVE_DATA": DEFAULT_DATA, **env}


def _run(settings: Settings) -> None:
    if not settings.is_loopback:
        raise StartError(
            f"GUARDWAVE_HOST={settings.host} listens beyond this machine; a demo's keys can be "
            "guessed, so it runs on a loopback address only"
        )
    check_port(settings)
    store = start_store(settings)
    supervisor = Supervisor(settings, [], store)
    supervisor.watch_signals()
    try:
        context, link = _prepare(settings)
        environment = _demo_environment(os.environ)
        fleet = [sys.executable, "-m", "guardwave.control_plane.cli", "demo", "fleet"]
        supervisor.children += [web_child(environment), worker_child(environment)]
        supervisor.start()
        supervisor.wait_until_ready()
        if supervisor.stop_asked.is_set():
            return
        supervisor.children.append(Child("the fleet", fleet, environment, is_client=True))
        supervisor.children[-1].start()
        click.echo(_instructions(settings, link))
        _watch(context, supervisor)
    finally:
        supervisor.stop()
        files.demo_file(settings.data_dir).unlink(missing_ok=True)


def _prepare(settings: Settings) -> tuple[Context, str]:
    """Build the past, start the clock at its end, and return a sign-in link."""
    client = open_store(settings)
    marks = DemoStore(client)
    if not marks.is_empty():
        if marks.mark() is None:
            raise StartError(
                f"the store at {settings.data_dir} holds something that is not a demo; set "
                "GUARDWAVE_DATA to another directory"
            )
        _report("starting over: the last demo's data is removed")
        marks.wipe()
        open_store(settings).close()
    live_at = bootstrap.live_midnight(datetime.now(UTC))
    marks.set_mark(_mark(live_at))
    context = replace(open_context(settings, client), randomness=bootstrap.seeded_randomness())
    tokens = bootstrap.build(context, live_at, report=_report)
    marks.set_mark(_mark(live_at))
    files.write(
        settings.data_dir,
        files.DemoFile(url_of(settings), tokens.ingest, tokens.runtime, tokens.operator),
    )
    live = open_context(settings, client)
    live.environments.store_id()
    return live, sign_in_link(live, settings, name="demo sign-in")


def _mark(live_at: datetime) -> DemoMark:
    """Return a clock that now stands just before `live_at`."""
    return DemoMark(time.time_ns(), to_ns(live_at - bootstrap.BEFORE_LIVE), SPEED)


def _report(text: str) -> None:
    click.echo(f"demo: {text}", err=True)


def _instructions(settings: Settings, link: str) -> str:
    url = url_of(settings)
    return "\n".join(
        (
            "",
            f"guardwave demo is running on {url}; a day passes in {REAL_SECONDS_A_DAY} seconds.",
            "",
            f"  1. Sign in (works once):  {link}",
            "  2. Watch internal's first enforce wave; its gate is evaluated after 7 complete",
            "     days, in about a minute. public-cloud has evidence of its own.",
            f"  3. Roll internal back:    {url}/environments/internal/rollback",
            "  4. Break an invariant:    guardwave demo misbehave",
            "     (from another terminal; `.venv/bin/guardwave demo misbehave` after `make demo`)",
            "  5. Promote public-cloud:  open its gate page, which is within, and promote to warn.",
            "",
            "Ctrl-C stops it.",
            "",
        )
    )


def _watch(context: Context, supervisor: Supervisor) -> None:
    """Keep everything running, and report each gate evaluation when it is done."""
    reported: set[tuple[str, int]] = set()
    checked_at = 0.0
    while not supervisor.stop_asked.wait(TICK_S):
        supervisor.tick()
        if time.monotonic() - checked_at < _CHECK_EVERY_S:
            continue
        checked_at = time.monotonic()
        try:
            _report_evaluations(context, supervisor.settings, reported)
        except StoreUnavailable:
            continue


def _report_evaluations(
    context: Context, settings: Settings, reported: set[tuple[str, int]]
) -> None:
    for name in _ENVIRONMENTS:
        newest = context.gates.newest_done(name, GUARD)
        if newest is None or (name, newest.id) in reported:
            continue
        reported.add((name, newest.id))
        _report(f"{name}: {_line(newest)}")
        _report(f"  {url_of(settings)}/environments/{name}/guards/{GUARD}/gates/{newest.id}")


def _line(evaluation: Evaluation) -> str:
    if evaluation.status is not EvaluationStatus.DONE:
        return f"gate evaluation {evaluation.id} {evaluation.status}"
    return f"{evaluation.gate} gate is {evaluation.verdict}. {evaluation.sentence}"


@demo.command(name="misbehave")
@click.option("--environment", default=bootstrap.INTERNAL, show_default=True)
@click.option("--owner", default=f"{bootstrap.INTERNAL}-workspace-0007")
def misbehave_command(environment: str, owner: str) -> None:
    """Let one simulated owner break an invariant of a running demo, and wait for the latch."""
    running = files.read(Settings.from_env(_demo_environment(os.environ)).data_dir)
    if environment not in running.ingest:
        known = ", ".join(sorted(running.ingest))
        raise click.UsageError(f"the demo has no environment {environment!r}; it has {known}")
    before = misbehave.break_invariant(running, environment=environment, owner=owner)
    click.echo(f"{owner} (mode {before}) reported a contract_violation.")
    seconds = misbehave.wait_for_latch(running, environment=environment)
    if seconds is None:
        raise StartError(f"{environment} was not latched within {misbehave.WAIT_S:.0f} s")
    click.echo(
        f"{environment} is in shadow and latched {seconds:.1f} s later. A person must acknowledge "
        f"it: {running.url}/environments/{environment}"
    )


@demo.command(name="fleet", hidden=True)
def fleet_command() -> None:
    """Run the simulated fleet of a running demo; `guardwave demo` starts it."""
    logging.basicConfig(format="%(levelname)s %(name)s %(message)s", level=logging.WARNING)
    settings = Settings.from_env(_demo_environment(os.environ))
    running = files.read(settings.data_dir)
    client = open_store(settings)
    clock = clock_of(DemoStore(client).mark())
    client.close()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    hosts, simulations = [], []
    live_day = (from_ns(clock.moment_origin_ns) + bootstrap.BEFORE_LIVE).date()
    for fleet in bootstrap.fleets(live_day):
        name = fleet.environment
        host = Host(running.url, name, running.ingest[name])
        assignments = Assignments(running.url, running.runtime[name], name, service_version=VERSION)
        hosts.append(host)
        simulations.append(Simulation(fleet, clock, host=host, assignments=assignments))
    for simulation in simulations:
        threading.Thread(target=simulation.keep_resolving, args=(stop,), daemon=True).start()
    while not stop.wait(TICK_S):
        for simulation in simulations:
            simulation.tick()
    for host in hosts:
        host.flush()
