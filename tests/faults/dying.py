"""Dying processes: each ends at a chosen command to the store, as if by `kill -9`."""

import io
import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from redis.connection import AbstractConnection

from guardwave.control_plane.core.clock import fixed_clock
from guardwave.control_plane.core.otlp_request import Encoding, OtlpRequest
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.data_plane.credential_cache import CredentialCache
from guardwave.control_plane.ingest.door import Door
from guardwave.control_plane.ingest.intake import Intake
from guardwave.control_plane.jobs.worker import Worker
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.server.clients import connect
from tests.support.lives import HOLDER
from tests.support.worlds import context_over

DIED = -signal.SIGKILL


@dataclass(frozen=True)
class Death:
    """Before the command of this number is sent, or after, its answer unread."""

    command: int
    is_after: bool


def die_in(action: Callable[..., None], *arguments: object, death: Death) -> bool:
    """Run the action in a process of its own; answer whether it died before it was done."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=_run, args=(action, arguments, death))
    process.start()
    process.join()
    assert process.exitcode in (0, DIED), process.exitcode
    return process.exitcode == DIED


def _run(action: Callable[..., None], arguments: tuple[object, ...], death: Death) -> None:
    sent = 0
    true_send = AbstractConnection.send_packed_command

    def send(self, command, check_health=True):
        nonlocal sent
        sent += 1
        number = sent  # to connect sends commands of its own
        if number == death.command and not death.is_after:
            os.kill(os.getpid(), signal.SIGKILL)
        true_send(self, command, check_health)
        if number == death.command:
            os.kill(os.getpid(), signal.SIGKILL)

    AbstractConnection.send_packed_command = send  # type: ignore[method-assign]  # dies in there
    action(*arguments)


def _context(data_dir: Path, now: datetime) -> Context:
    return context_over(connect(Settings(data_dir=data_dir)), clock=fixed_clock(now))


def receive(data_dir: Path, now: datetime, token: str, body: bytes) -> None:
    """Take in a body of logs."""
    context = _context(data_dir, now)
    request = OtlpRequest(
        signal="logs",
        content_type=Encoding.PROTOBUF.value,
        content_encoding=None,
        content_length=len(body),
        stream=io.BytesIO(body),
        authorization=f"Bearer {token}",
    )
    answer = Door(Intake(context), CredentialCache(context))(request)
    assert answer.status == 200, answer.body


def work(data_dir: Path, now: datetime) -> None:
    """Do once what a worker does."""
    Worker(_context(data_dir, now), holder=HOLDER).run_once()
