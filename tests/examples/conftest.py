"""Example fixtures: a new world for each test."""

import pytest

from tests.examples.hosts import World


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.close()
