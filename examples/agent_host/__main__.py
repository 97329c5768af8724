"""Entry point: `python -m examples.agent_host`, an agent at the terminal."""

import contextlib
import os
import tempfile
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import click

from examples.agent_host.batches import Workbench
from examples.agent_host.model import Model
from examples.agent_host.people import CHANNELS, TERMINAL, Channel
from examples.agent_host.reporting import reporting
from examples.agent_host.scripts import SCENARIOS
from examples.agent_host.session import Host, Resolver, Session
from examples.agent_host.settings import Settings, read_dotenv
from examples.agent_host.stub_model import StubModel
from examples.agent_host.terminal import Terminal
from examples.agent_host.transcript import Transcript
from examples.agent_host.workshop import workshop
from guardwave.client import Assignment, Assignments, GuardTelemetry
from guardwave.guards import Route, pipeline


@click.command()
@click.option("--scenario", type=click.Choice(sorted(SCENARIOS)), default="failing")
@click.option("--channel", type=click.Choice(list(CHANNELS)), default=TERMINAL.name)
@click.option("--directory", type=click.Path(file_okay=False, path_type=Path))
def main(scenario: str, channel: str, directory: Path | None) -> None:
    """Talk to an agent whose model plays a SCENARIO, or to the model at AGENT_MODEL_URL.

    Prompts come through CHANNEL: guards are off on every one but the terminal. DIRECTORY keeps
    notes, mails and the transcript; without it they are deleted at the end.
    """
    dotenv = Path(".env")
    project = read_dotenv(dotenv.read_text()) if dotenv.exists() else {}
    settings = Settings.read(os.environ, project)
    with contextlib.ExitStack() as resources:
        if directory is None:
            directory = Path(resources.enter_context(tempfile.TemporaryDirectory()))
        directory.mkdir(parents=True, exist_ok=True)
        url = settings.model_url
        if url is None:
            url = resources.enter_context(StubModel(SCENARIOS[scenario]())).url
        telemetry = resources.enter_context(_telemetry(settings))
        host = Host(
            Model(url, settings.model_name),
            Workbench(workshop(directory)),
            _resolver(settings, telemetry),
            telemetry,
        )
        transcript = Transcript(directory / "transcript.ndjson")
        _talk(host, settings, transcript, CHANNELS[channel])


def _talk(host: Host, settings: Settings, transcript: Transcript, channel: Channel) -> None:
    terminal = Terminal()
    terminal.listen_for_interrupts()
    if settings.mode.diagnostic is not None:
        terminal.show(settings.mode.diagnostic)
    session = Session(host, transcript, terminal, person_id=settings.owner)
    for text in terminal.prompts():
        result = session.prompt(text, channel=channel)
        why = "" if result.stopped_by is None else f" by {result.stopped_by}"
        terminal.show(f"[{result.outcome}{why}]")
    if terminal.has_hung_up:
        session.disconnected()


def _resolver(settings: Settings, telemetry: GuardTelemetry) -> Resolver:
    """Return the source of assignments: the control plane, or else the process's own mode."""
    if settings.guardwave_url is None or settings.runtime_token is None:
        fixed = tuple(Assignment(guard, settings.mode.mode) for guard in pipeline.GUARDS)
        return lambda _: fixed
    assignments = Assignments(
        settings.guardwave_url,
        settings.runtime_token,
        settings.environment,
        service_version=settings.version,
        telemetry=telemetry,
    )

    # In parallel: each may take 200 ms, and the person waits for all of them.
    pool = ThreadPoolExecutor(len(pipeline.GUARDS))

    def resolve(route: Route) -> Sequence[Assignment]:
        ask = partial(assignments.resolve, owner=settings.owner, route=route.value)
        return list(pool.map(ask, pipeline.GUARDS))

    return resolve


def _telemetry(settings: Settings) -> contextlib.AbstractContextManager[GuardTelemetry]:
    token = os.environ.get("GUARDWAVE_INGEST_TOKEN")
    if settings.guardwave_url is None or token is None:
        return contextlib.nullcontext(GuardTelemetry())
    resource = {
        "service.name": "example-agent-host",
        "service.version": settings.version,
        "service.instance.id": str(uuid.uuid4()),
        "deployment.environment.name": settings.environment,
    }
    return reporting(settings.guardwave_url, token, resource)


if __name__ == "__main__":
    main()
