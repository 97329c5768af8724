"""Collectors: processes of their own, configured as in docs/collector.md."""

import contextlib
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.web_workers import PATIENCE_S

DOCS = Path(__file__).parents[2] / "docs" / "collector.md"
TRIED = re.compile(r"<!-- a test runs a Collector .*?```yaml\n(.*?)```", re.DOTALL)
EXPORTER = "otlphttp/guardwave"
STORAGE = "file_storage/guardwave"

Config = dict[str, Any]


def program_of(package: str, pattern: str) -> Path:
    """Return a program that a package brings; some are shipped without the bit to run them."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        pytest.skip(f"{package} has no program for this platform, so this is NOT tested here")
    (found,) = (file for file in files if re.search(pattern, file.name))
    path = Path(str(found.locate()))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def whole_collector() -> Path:
    """Return the contrib distribution's program, which no package registry brings: it is on PATH.

    Only it has the OTLP receiver and the queue on disk.
    """
    found = shutil.which("otelcol-contrib")
    if found is None:
        pytest.skip(
            "otelcol-contrib is not on PATH, so a Collector's queue on disk is NOT tested here;"
            " remedy: put the program of an OpenTelemetry Collector contrib release on PATH"
        )
    return Path(found)


def documented_config(port: int) -> Config:
    """Return the documented configuration, with an exporter that sends to this port."""
    blocks = [yaml.safe_load(block) for block in TRIED.findall(DOCS.read_text(encoding="utf-8"))]
    config = {key: part for block in blocks for key, part in block.items()}
    assert {"exporters", "extensions", "receivers", "service"} == set(config)
    config["exporters"][EXPORTER]["endpoint"] = f"http://127.0.0.1:{port}"
    return config


class Collector:
    """A Collector that a test may kill and start again; what it prints goes to one file."""

    def __init__(self, arguments: Sequence[str], log: Path, variables: Mapping[str, str]) -> None:
        self._arguments = list(arguments)
        self._log = log
        self._variables = {"PATH": os.environ["PATH"], **variables}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def printed(self) -> str:
        return self._log.read_text(encoding="utf-8")

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                self._arguments, stdout=output, stderr=output, env=self._variables
            )

    def kill(self) -> None:
        """End it as a crash would: it gets no chance to write or send anything more."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE_S)

    def end(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE_S)


@contextlib.contextmanager
def running_collector(
    arguments: Sequence[str], log: Path, variables: Mapping[str, str]
) -> Iterator[Collector]:
    """Run a Collector until the block ends."""
    collector = Collector(arguments, log, variables)
    collector.start()
    try:
        yield collector
        assert collector.is_running, collector.printed
    finally:
        collector.end()
