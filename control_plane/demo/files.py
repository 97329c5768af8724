"""What the demo's processes tell each other, in a file that only its owner can read."""

import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from control_plane.errors import StartError


@dataclass(frozen=True, slots=True)
class DemoFile:
    """Where the demo listens, and the tokens of its fleet and its operator."""

    url: str
    ingest: dict[str, str]
    runtime: dict[str, str]
    operator: str


_FILE = TypeAdapter(DemoFile)


def demo_file(data_dir: Path) -> Path:
    """Return where the demo keeps it."""
    return data_dir / "demo.json"


def write(data_dir: Path, held: DemoFile) -> None:
    """Write the file, readable by its owner alone."""
    path = demo_file(data_dir)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(_FILE.dump_json(held))


def read(data_dir: Path) -> DemoFile:
    """Return what a demo wrote that runs on this data directory.

    Raises:
        StartError: there is no demo's file, or it cannot be read.
    """
    path = demo_file(data_dir)
    try:
        return _FILE.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise StartError(
            f"no demo runs on {data_dir}; start one with `guardwave demo`, or set GUARDWAVE_DATA "
            "to its directory"
        ) from error
