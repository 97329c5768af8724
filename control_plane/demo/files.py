"""Demo file: address and tokens for the demo's processes, readable by its owner alone."""

import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from guardwave.control_plane.core.errors import StartError


@dataclass(frozen=True, slots=True)
class DemoFile:
    """The demo's address, and the tokens of its fleet and its operator."""

    url: str
    ingest: dict[str, str]
    runtime: dict[str, str]
    operator: str


_FILE = TypeAdapter(DemoFile)


def demo_file(data_dir: Path) -> Path:
    """Return the path of the demo file."""
    return data_dir / "demo.json"


def write(data_dir: Path, content: DemoFile) -> None:
    """Write the file, readable by its owner alone."""
    path = demo_file(data_dir)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(_FILE.dump_json(content))


def read(data_dir: Path) -> DemoFile:
    """Return the file of the demo that runs on this data directory.

    Raises:
        StartError: the file is missing or cannot be read.
    """
    path = demo_file(data_dir)
    try:
        return _FILE.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise StartError(
            f"no demo runs on {data_dir}; start one with `guardwave demo`, or set GUARDWAVE_DATA "
            "to its directory"
        ) from error
