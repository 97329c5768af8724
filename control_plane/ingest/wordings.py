"""The short way of a log record that says what an earlier one said, of another prompt.

A host's records differ in little but their prompt: what a start or a transition says is read and
checked once. What this way gives is what the long way gives; anything else goes the long way.
"""

from control_plane.ingest import fields
from control_plane.ingest.contract import (
    NEWEST_NS,
    OLDEST_NS,
    PROMPT_ID,
    PROMPT_ID_BYTES,
)
from control_plane.ingest.event_time import Clock
from control_plane.ingest.otlp import Likened, LogItem
from control_plane.ingest.records import (
    Origin,
    PromptStart,
    Record,
    Repetition,
    Transition,
    Wording,
)
from control_plane.ingest.rejections import Refusal

# Some thousands are a host's whole vocabulary.
_REMEMBERED = 8192

_Key = tuple[str, tuple[int, ...]]


class Wordings:
    """What records said before, and how many attributes of each were dropped.

    Shared by the threads of a web worker: each step is one of a dict.
    """

    def __init__(self) -> None:
        self._known: dict[_Key, tuple[Wording, int]] = {}

    def repeated(
        self, item: LogItem, origin: Origin, *, now_ns: int, clock: Clock
    ) -> tuple[Repetition, int] | None:
        """Return the item as a repetition, with the number of its dropped attributes.

        None when what it says was not read before, or its time or its prompt is not as usual.
        """
        attributes = item.attributes
        if item.has_body or not isinstance(attributes, Likened):
            return None
        known = self._known.get((item.event_name, attributes.alike))
        if known is None:
            return None
        happened = item.time_ns or item.observed_time_ns
        time_ns = clock(happened)
        if not happened or not now_ns - OLDEST_NS <= time_ns <= now_ns + NEWEST_NS:
            return None
        prompt_id = attributes.get(PROMPT_ID)
        if type(prompt_id) is not str or not 0 < len(prompt_id) <= PROMPT_ID_BYTES:
            return None
        if not prompt_id.isascii():
            return None
        try:
            ids = fields.assignment_ids(attributes) or origin.assignment_ids
        except Refusal:
            return None
        wording, dropped = known
        return Repetition(wording, origin, time_ns, prompt_id, ids), dropped

    def remember(self, item: LogItem, record: Record, dropped: int) -> None:
        """Keep what a record says, if it can come again."""
        attributes = item.attributes
        if not isinstance(attributes, Likened) or not isinstance(record, PromptStart | Transition):
            return
        if record.has_body or record.deny_listed:
            return
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[item.event_name, attributes.alike] = Wording(record), dropped
