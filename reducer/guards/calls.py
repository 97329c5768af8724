"""A tool call as the guards see it: its id, its tool, and a digest in place of its arguments."""

from collections.abc import Mapping
from typing import NamedTuple

from reducer.guards.canonical import fingerprint


class ToolCall(NamedTuple):
    """One call that the model asked for, before anything ran.

    `call_id` is the provider's id, None or empty when it sent none. `tool` is the resolved name,
    not the one on display. Without a `fingerprint` the call equals no other one, so that no guard
    takes it for a repeat.
    """

    call_id: str | None
    tool: str
    fingerprint: str | None

    @classmethod
    def of(
        cls,
        call_id: str | None,
        tool: str,
        arguments: object,
        *,
        aliases: Mapping[str, str] | None = None,
    ) -> "ToolCall":
        """Return the call with the digest of its tool and canonical arguments.

        Raises:
            ValueError: a blank tool name, or arguments that JSON cannot say or that are too deep
                or too large (canonical.fingerprint); naming the field.
        """
        return cls(call_id, tool, fingerprint(tool, arguments, aliases=aliases))
