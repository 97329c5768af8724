import sys

import pytest
from click.testing import CliRunner

from guardwave.control_plane.cli.serve import serve
from guardwave.control_plane.core.errors import StartError
from tests.support.web_workers import free_port


def test_grpc_without_its_extra_stops_the_start_and_names_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "grpc", None)
    variables = {"GUARDWAVE_PORT": str(free_port()), "GUARDWAVE_DATA": str(tmp_path)}
    with pytest.raises(StartError, match=r"install guardwave\[grpc\]"):
        CliRunner().invoke(serve, ["--grpc"], env=variables, catch_exceptions=False)
    assert not list(tmp_path.iterdir())
