"""The vector files as the package ships them, for tests that run each vector by its name."""

import json
from importlib import resources

import pytest

from reducer.conformance.vectors import VectorFile, parse


def shipped(guard: str) -> VectorFile:
    """Return the vectors of one guard (`repeated-failure`, ...) from the installed package."""
    home = resources.files("reducer.conformance") / "vectors" / f"{guard}.json"
    return parse(json.loads(home.read_text(encoding="utf-8")))


def shipped_params(guard: str):
    """Return one pytest parameter for each vector, named as the vector is."""
    return [pytest.param(vector, id=vector.name) for vector in shipped(guard).vectors]
