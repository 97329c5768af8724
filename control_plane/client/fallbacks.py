"""Fallbacks: mode shadow with a code, a cause and a remedy, whenever no answer can be used."""

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from guardwave.control_plane.client.answers import Assignment
from guardwave.control_plane.client.http_client import Key, Reply
from guardwave.reducer.vocabulary import Mode

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
    """Why the client made the answer: the code in a fallback's `reasons`."""

    NOT_ASKED = "not_asked"
    NOT_REACHED = "not_reached"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    NOT_UNDERSTOOD = "not_understood"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class FallbackCause:
    """Why there is no assignment: a code, and a clause for people that ends with a remedy."""

    reason: FallbackReason
    why: str


OUTDATED_ANSWER = FallbackCause(
    FallbackReason.SUPERSEDED,
    "the answer was too old when it came, or overtaken by a newer generation; the next prompt asks "
    "again",
)


def fallback(guard: object, cause: FallbackCause) -> Assignment:
    """Return mode shadow with the cause; a guard that is no text is shown by its type."""
    return Assignment(
        guard if isinstance(guard, str) else f"<{type(guard).__name__}>",
        Mode.SHADOW,
        reasons=(cause.reason.value,),
        sentence=f"Mode shadow: {cause.why}.",
        is_fallback=True,
    )


def no_question(why: str) -> FallbackCause:
    """Return the cause when the client cannot ask now."""
    return FallbackCause(FallbackReason.NOT_ASKED, f"{why}; the next prompt asks again")


def client_fault(error: Exception) -> FallbackCause:
    """Return the cause after a fault of the client. The error's text may name an owner."""
    return FallbackCause(
        FallbackReason.NOT_ASKED, f"the client failed with {type(error).__name__}; report this"
    )


def connection_failure(error: Exception, host: str) -> FallbackCause:
    """Return the cause when no whole reply came from the host."""
    return FallbackCause(
        FallbackReason.NOT_REACHED,
        f"the control plane was not reached ({type(error).__name__}); see that it runs at {host} "
        "and that this host may connect to it",
    )


def answer_timeout(seconds: float) -> FallbackCause:
    """Return the cause when the prompt could wait no longer."""
    return FallbackCause(
        FallbackReason.NOT_REACHED,
        f"the control plane gave no answer within {seconds * 1000:.0f} ms; one that comes later is "
        "kept for the next prompt",
    )


def client_error(reply: Reply, key: Key, environment: str) -> FallbackCause:
    """Return the cause after a 4xx: its status, the server's detail, and the remedy."""
    remedy = _REMEDIES.get(reply.status, _OTHER_REMEDY).format(environment=environment)
    why = f"the control plane refused with {_server_text(reply, key)}; {remedy}"
    return FallbackCause(FallbackReason.REFUSED, why)


def server_error(reply: Reply, key: Key) -> FallbackCause:
    """Return the cause after 429 or a 5xx, which leave the owner's last answer valid."""
    why = f"the control plane cannot answer now: {_server_text(reply, key)}"
    return FallbackCause(FallbackReason.UNAVAILABLE, f"{why}; the next prompt asks again")


def invalid_answer(why: str) -> FallbackCause:
    """Return the cause after an answer that cannot be used; `why` is the fault."""
    return FallbackCause(
        FallbackReason.NOT_UNDERSTOOD,
        f"the answer was not understood: {why}; see that endpoint is a guardwave server's address",
    )


def older_generation(generation: int | None, newest: int) -> FallbackCause:
    """Return the cause after an answer of an older generation than an earlier answer."""
    return FallbackCause(
        FallbackReason.SUPERSEDED,
        f"the answer is of generation {generation} and {newest} was seen before, so the server "
        "that answered is behind; the next prompt asks again",
    )


def _server_text(reply: Reply, key: Key) -> str:
    detail = _detail(reply.body, key.owner)
    return f"{reply.status} (it gave no detail)" if detail is None else f"{reply.status} ({detail})"


def _detail(body: bytes, owner: str) -> str | None:
    """Return the `detail` of a problem document (RFC 9457), fit for a line of a log."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    detail = document.get("detail") if isinstance(document, dict) else None
    if not isinstance(detail, str):
        return None
    printable = (character if character.isprintable() else " " for character in detail)
    line = " ".join("".join(printable).split())
    # A proxy may repeat the path and the headers, with the owner and the token.
    masked = re.sub(rf"(?<!\w){re.escape(owner)}(?!\w)", "***", _TOKEN.sub("***", line))
    return masked[:MOST_DETAIL_CHARACTERS].rstrip(" .") or None
