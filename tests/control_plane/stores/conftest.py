"""The evidence store on each supported server."""

import pytest

from guardwave.control_plane.stores.evidence.store import EvidenceStore


@pytest.fixture
def evidence(any_store):
    return EvidenceStore(any_store)
