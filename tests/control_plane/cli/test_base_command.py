"""Base command: `guardwave` on a host that has only the base install."""

import subprocess
import sys

import pytest

# Stands in for an install without the server: these imports fail as they would there.
WITHOUT_SERVER = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"flask", "redis", "rich", "pydantic"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from guardwave.control_plane.cli import main
main(prog_name="guardwave")
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_SERVER, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arguments", [("--help",), ("version",), ("--version",)])
def test_help_and_version_need_no_server(arguments):
    found = run(*arguments)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout


def test_a_command_of_the_server_names_what_to_install():
    found = run("token", "list")
    assert found.returncode == 1
    assert "pip install '.[server]'" in found.stderr
    assert "Traceback" not in found.stderr
