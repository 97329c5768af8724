"""Shipped vectors: the vector files of the package, one test parameter for each vector."""

import json
from importlib import resources

import pytest

from guardwave.reducer.conformance.vectors import VectorFile, parse


def shipped(guard: str) -> VectorFile:
    """Return the vectors of one guard (`repeated-failure`, ...) from the installed package."""
    home = resources.files("guardwave.reducer.conformance") / "vectors" / f"{guard}.json"
    return parse(json.loads(home.read_text(encoding="utf-8")))


def shipped_params(guard: str):
    """Return one pytest parameter for each vector, named as the vector is."""
    return [pytest.param(vector, id=vector.name) for vector in shipped(guard).vectors]
