"""The events of a prompt as the store is told them in columns, one by one."""

from collections.abc import Sequence

from control_plane.stores.prompt_events import OWN_FIELDS, TOKEN, Like, Own, PromptEvents


def each_of(told: PromptEvents) -> list[tuple[Like, bytes, Sequence[Own]]]:
    """Return of each event what it is like, its token, and its second, day and numbers."""
    return [
        (
            like,
            told.tokens[at * TOKEN : (at + 1) * TOKEN],
            told.own[at * OWN_FIELDS : (at + 1) * OWN_FIELDS],
        )
        for at, like in enumerate(told.likes)
    ]
