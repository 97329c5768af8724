"""Shadow, the answer to every doubt, and how a host is told what the doubt is."""

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from control_plane.client.answers import Assignment
from control_plane.client.asking import Key, Reply
from reducer.vocabulary import Mode

MOST_DETAIL_CHARACTERS = 300

_TOKEN = re.compile(r"gw_[a-z0-9]{12}_[\w-]+")

_REMEDIES = {
    400: "mend what it names",
    401: "make a token with `guardwave token create --role runtime --environment {environment}` "
    "and give it as token",
    403: "give as token one of role runtime for environment {environment}, or as environment the "
    "one that the token is for",
    404: "compare endpoint (the server's address, without /api/v1), environment and guard with "
    "what the server has",
}
_OTHER_REMEDY = "change what it names, or ask those who run the control plane"


class FallbackReason(StrEnum):
    """Why the client answered and not the control plane: the code in a fallback's `reasons`."""

    NOT_ASKED = "not_asked"
    NOT_REACHED = "not_reached"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    NOT_UNDERSTOOD = "not_understood"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why there is no assignment: a code, and a clause for people with the remedy in it."""

    reason: FallbackReason
    why: str


OVERTAKEN = Doubt(
    FallbackReason.SUPERSEDED,
    "the answer was too old when it came, or overtaken by a newer generation; the next prompt asks "
    "again",
)


def fallback(guard: object, doubt: Doubt) -> Assignment:
    """Return shadow, with the doubt as its reason. What is no text names no guard."""
    return Assignment(
        guard if isinstance(guard, str) else f"<{type(guard).__name__}>",
        Mode.SHADOW,
        reasons=(doubt.reason.value,),
        sentence=f"Mode shadow: {doubt.why}.",
        is_fallback=True,
    )


def not_asked(why: str) -> Doubt:
    """Return the doubt when too much is under way to ask."""
    return Doubt(FallbackReason.NOT_ASKED, f"{why}; the next prompt asks again")


def failed(error: Exception) -> Doubt:
    """Return the doubt after a fault of the client's own; the error's text may repeat an owner."""
    return Doubt(
        FallbackReason.NOT_ASKED, f"the client failed with {type(error).__name__}; report this"
    )


def not_reached(error: Exception, host: str) -> Doubt:
    """Return the doubt when nothing, or nothing whole, came back from the host."""
    return Doubt(
        FallbackReason.NOT_REACHED,
        f"the control plane was not reached ({type(error).__name__}); see that it runs at {host} "
        "and that this host may connect to it",
    )


def too_slow(seconds: float) -> Doubt:
    """Return the doubt when the prompt could wait no longer."""
    return Doubt(
        FallbackReason.NOT_REACHED,
        f"the control plane gave no answer within {seconds * 1000:.0f} ms; one that comes later is "
        "kept for the next prompt",
    )


def refused(reply: Reply, key: Key, environment: str) -> Doubt:
    """Return the doubt after a 4xx: its status, what the server says of it, and the remedy."""
    remedy = _REMEDIES.get(reply.status, _OTHER_REMEDY).format(environment=environment)
    why = f"the control plane refused with {_said(reply, key)}; {remedy}"
    return Doubt(FallbackReason.REFUSED, why)


def unavailable(reply: Reply, key: Key) -> Doubt:
    """Return the doubt after 429 or a 5xx, which say nothing of the owner."""
    why = f"the control plane cannot say now: {_said(reply, key)}; the next prompt asks again"
    return Doubt(FallbackReason.UNAVAILABLE, why)


def not_understood(why: str) -> Doubt:
    """Return the doubt after an answer that is none: `why` says what is wrong with it."""
    return Doubt(
        FallbackReason.NOT_UNDERSTOOD,
        f"the answer was not understood: {why}; see that endpoint is a guardwave server's address",
    )


def superseded(given: int | None, newest: int) -> Doubt:
    """Return the doubt after an answer of an older generation than one that was seen."""
    return Doubt(
        FallbackReason.SUPERSEDED,
        f"the answer is of generation {given} and {newest} was seen before, so the server that "
        "answered is behind; the next prompt asks again",
    )


def _said(reply: Reply, key: Key) -> str:
    detail = _detail(reply.body, key.owner)
    return f"{reply.status} (it gave no detail)" if detail is None else f"{reply.status} ({detail})"


def _detail(body: bytes, owner: str) -> str | None:
    """Return the `detail` of a problem document (RFC 9457), fit for a line of a log."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    found = document.get("detail") if isinstance(document, dict) else None
    if not isinstance(found, str):
        return None
    line = " ".join("".join(each if each.isprintable() else " " for each in found).split())
    # A proxy may repeat the path and the headers it refused: the owner, and the token.
    masked = re.sub(rf"(?<!\w){re.escape(owner)}(?!\w)", "***", _TOKEN.sub("***", line))
    return masked[:MOST_DETAIL_CHARACTERS].rstrip(" .") or None
