"""A tool call as the guards see it: its id, its tool, and a digest in place of its arguments."""

from collections.abc import Mapping
from typing import NamedTuple

from reducer.guards.canonical import UnreadableCall, fingerprint


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

        Nothing that a model writes is an error here: a blank name, a number that is not finite, or
        arguments beyond the bounds of canonical.fingerprint leave the call without a digest.

        Raises:
            ValueError: a tool name that is no text, or arguments of a type that JSON does not
                have: mistakes of the host's code; naming the field.
        """
        try:
            return cls(call_id, tool, fingerprint(tool, arguments, aliases=aliases))
        except UnreadableCall:
            return cls(call_id, tool, None)
