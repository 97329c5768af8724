"""What a web worker answers agent hosts from: the snapshot, the credentials and the clock."""

from dataclasses import dataclass, field

from control_plane.clock import Clock
from control_plane.context import Context
from control_plane.data_plane.credential_cache import CredentialCache
from control_plane.data_plane.refresher import Refresher
from control_plane.queries.answer_memory import AnswerMemory
from control_plane.stores.jobs import IntakeDoor

EXTENSION = "guardwave_data_plane"


@dataclass(frozen=True, slots=True)
class DataPlane:
    """One per web worker."""

    refresher: Refresher
    credentials: CredentialCache
    clock: Clock
    answers: AnswerMemory = field(default_factory=AnswerMemory)


def over(context: Context, *, door: IntakeDoor = IntakeDoor.HTTP) -> DataPlane:
    """Return the data plane of this process; it reads nothing before it is asked something."""
    credentials = CredentialCache(context)
    return DataPlane(Refresher(context, credentials, door=door), credentials, context.clock)
