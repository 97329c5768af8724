"""Reported prompts: the events of a prompt, read back from the columns that the store gets."""

from collections.abc import Sequence

from guardwave.control_plane.stores.evidence.delta.prompt_events import (
    TOKEN,
    VALUES_PER_EVENT,
    EventValue,
    PromptEvents,
    SharedAttributes,
)


def rows_of(events: PromptEvents) -> list[tuple[SharedAttributes, bytes, Sequence[EventValue]]]:
    """Return the shared attributes, the token and the values of each event."""
    return [
        (
            shared,
            events.tokens[at * TOKEN : (at + 1) * TOKEN],
            events.values[at * VALUES_PER_EVENT : (at + 1) * VALUES_PER_EVENT],
        )
        for at, shared in enumerate(events.shared)
    ]
