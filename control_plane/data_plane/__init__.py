"""Data plane: what a web worker needs to answer agent hosts from memory."""

from dataclasses import dataclass, field

from guardwave.control_plane.core.clock import Clock
from guardwave.control_plane.data_plane.answer_cache import AnswerCache
from guardwave.control_plane.data_plane.credential_cache import CredentialCache
from guardwave.control_plane.data_plane.refresher import Refresher
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.jobs import IntakeDoor

__all__ = [
    "EXTENSION",
    "DataPlane",
    "assignment_request",
    "assignments",
    "build_data_plane",
    "credential_cache",
]

EXTENSION = "guardwave_data_plane"


@dataclass(frozen=True, slots=True)
class DataPlane:
    """Snapshot, credentials, clock and cached answers of one web worker."""

    refresher: Refresher
    credentials: CredentialCache
    clock: Clock
    answers: AnswerCache = field(default_factory=AnswerCache)


def build_data_plane(context: Context, *, door: IntakeDoor = IntakeDoor.HTTP) -> DataPlane:
    """Return the data plane of this process; it reads the store when it is first used."""
    credentials = CredentialCache(context)
    return DataPlane(Refresher(context, credentials, door=door), credentials, context.clock)
