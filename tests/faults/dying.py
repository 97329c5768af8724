"""Processes that end at a chosen command to the store, as `kill -9` would end them."""

import io
import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from redis.connection import AbstractConnection

from control_plane.clock import fixed
from control_plane.context import Context
from control_plane.data_plane.credential_cache import CredentialCache
from control_plane.ingest.door import Door
from control_plane.ingest.intake import Intake
from control_plane.jobs.worker import Worker
from control_plane.otlp_door import Encoding, OtlpRequest
from control_plane.settings import Settings
from control_plane.stores.clients import connect
from tests.control_plane.lives import HOLDER
from tests.control_plane.worlds import context_over

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
    return context_over(connect(Settings(data_dir=data_dir)), clock=fixed(now))


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
