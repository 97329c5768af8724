"""A batch as it arrived: each call's id and digest, and the id that opens the breaker."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from reducer.guards.calls import ToolCall
from reducer.guards.duplicate_call_id.names import digest_of
from reducer.guards.mistakes import mistaken

Responses: TypeAlias = tuple[tuple[ToolCall, ...], ...]


class ReceivedCall(NamedTuple):
    """A call of the batch: its id, None for a missing one, and what is known about it.

    `is_second` means that its response already had a call under this id.
    """

    raw_id: str | None
    digest: bytes
    is_second: bool


def received(responses: Responses) -> list[ReceivedCall]:
    """Return the calls of all responses in order.

    Raises:
        ValueError: a call id that is no text, or a fingerprint that `ToolCall.of` did not make.
    """
    found = []
    for response in responses:
        seen: set[str] = set()
        for call in response:
            raw_id = id_of(call)
            found.append(ReceivedCall(raw_id, digest_of(call.fingerprint), raw_id in seen))
            if raw_id is not None:
                seen.add(raw_id)
    return found


def firsts_of(
    responses: Responses, known: Mapping[str, bytes | None]
) -> dict[str, bytes | None] | None:
    """Return ids and digests when each call is the first one ever under an id of its own.

    Raises:
        ValueError: as `received`.
    """
    found: dict[str, bytes | None] = {}
    for response in responses:
        for call in response:
            raw_id = id_of(call)
            if raw_id is None or raw_id in found or raw_id in known:
                return None
            found[raw_id] = digest_of(call.fingerprint)
    return found or None


def trigger_of(
    calls: list[ReceivedCall], *, handled: Mapping[str, bytes | None], answered: Mapping[str, int]
) -> str | None:
    """Return the id that opens the breaker: answered before, or replayed twice in this batch."""
    times: dict[str, int] = {}
    for raw_id, digest, is_second in calls:
        if raw_id is None or is_second or not digest or raw_id not in handled:
            continue
        if handled[raw_id] == digest:
            times[raw_id] = times.get(raw_id, 0) + 1
    for raw_id, count in times.items():
        if count > 1 or raw_id in answered:
            return raw_id
    return None


def id_of(call: ToolCall) -> str | None:
    """Return the provider's id; None for a missing or blank one.

    Raises:
        ValueError: it is no text.
    """
    call_id = call.call_id
    if call_id is None:
        return None
    if not isinstance(call_id, str):
        raise mistaken("call_id", call_id, "pass the provider's text, or None without one")
    return call_id if call_id.strip() else None
