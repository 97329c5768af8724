"""The evidence store, on each server that it is promised to run on."""

import pytest

from control_plane.stores.evidence import EvidenceStore


@pytest.fixture
def evidence(any_store):
    return EvidenceStore(any_store)
