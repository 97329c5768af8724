"""API documents: every command in them is run, and every problem has its section."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from guardwave.control_plane.commands.rollback import FoundViolation, latch
from guardwave.control_plane.http.middleware.problems import sections
from guardwave.control_plane.rollouts.access import create_token
from guardwave.reducer.vocabulary import Invariant, Mode, Role
from tests.control_plane.http.conftest import ENVIRONMENT, GUARD, every_problem
from tests.support.web_workers import PATIENCE_S

DOCS = Path(__file__).parents[3] / "docs"
COMMAND = re.compile(r"```sh\n(?P<script>.*?)```\nAnswers (?P<status>\d{3})", re.DOTALL)


def test_every_command_of_the_api_document_is_answered_as_it_says(
    context, address, operator, admin, rollout, passed_gate, tmp_path
):
    if shutil.which("curl") is None:
        assert os.environ.get("CI") != "true", "curl is missing and CI leaves nothing untested"
        pytest.skip("curl is not on PATH, so the commands of docs/api.md are NOT run here")
    # The status of each call goes to stderr, whatever the command does with its output.
    (tmp_path / ".curlrc").write_text('write-out = "%{stderr}%{http_code}\\n"\n')
    variables = {
        **os.environ,
        "CURL_HOME": str(tmp_path),
        "GUARDWAVE_URL": address,
        "GUARDWAVE_TOKEN": str(operator.token),
        "GUARDWAVE_ADMIN_TOKEN": create_token(context, role=Role.ADMIN, environment=None),
        "GUARD": GUARD,
        "ROLLOUT": f"{address}{rollout}",
    }
    text = (DOCS / "api.md").read_text()
    commands = list(COMMAND.finditer(text))
    assert len(commands) == text.count("```sh\n") > 10
    for command in commands:
        script = command["script"]
        if "/promotions" in script:
            gate = passed_gate()
            variables |= {"EVALUATION": str(gate.id), "DIGEST": str(gate.digest)}
        if "/acknowledgement" in script:
            found = FoundViolation("r1", Invariant.CONTRACT_VIOLATION, GUARD, Mode.WARN, 1)
            record = latch(context, ENVIRONMENT, [found])
            assert record is not None
            variables["ROLLBACK"] = str(record.id)
        run = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        status = run.stderr.split()[-1]
        assert status == command["status"], f"{script}\n{run.stdout}{run.stderr}"


def test_every_problem_has_a_section_and_no_section_is_left_over():
    statuses = {code: text[:4] for code, text in sections().items()}
    assert statuses == {kind.code: f"{kind.status}." for kind in every_problem()}
