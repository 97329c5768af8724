"""An assignment as a host holds it, and how the server's answer is read."""

import json
from dataclasses import dataclass

from reducer.vocabulary import Mode

MOST_TTL_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which mode one owner has under one guard. It never changes: hold it and it is pinned.

    `reasons` are the codes of the server, most important first; `sentence` is for people.
    `is_fallback`: the control plane was not reached or did not say, so the mode is shadow.
    `assignment_id` is echoed in telemetry; None when there is none to echo.
    """

    guard: str
    mode: Mode
    assignment_id: str | None = None
    generation: int | None = None
    cohort: str | None = None
    wave: int = 0
    reasons: tuple[str, ...] = ()
    sentence: str = ""
    ttl_seconds: float = 0.0
    is_fallback: bool = False


def fallback(guard: str, why: str) -> Assignment:
    """Return shadow, the answer to every doubt."""
    return Assignment(guard, Mode.SHADOW, sentence=f"Mode shadow: {why}.", is_fallback=True)


def read(guard: str, body: bytes) -> Assignment:
    """Return the assignment of a server's answer.

    Raises:
        ValueError: it is not JSON, or a member is missing, has another type or an unknown mode.
    """
    document = json.loads(body)
    if not isinstance(document, dict):
        raise ValueError("the answer is not a JSON object")
    reasons = document.get("reasons")
    if not isinstance(reasons, list) or not all(isinstance(each, dict) for each in reasons):
        raise ValueError("the answer's reasons are not a list of objects")
    return Assignment(
        guard=guard,
        mode=Mode(_text(document, "mode") or ""),
        assignment_id=_text(document, "assignment_id"),
        generation=_number(document, "generation"),
        cohort=_text(document, "cohort"),
        wave=_number(document, "wave") or 0,
        reasons=tuple(str(each.get("code")) for each in reasons),
        sentence=_text(document, "sentence") or "",
        ttl_seconds=min(float(_number(document, "ttl_s") or 0), MOST_TTL_SECONDS),
    )


def _text(document: dict[str, object], name: str) -> str | None:
    found = document.get(name)
    if found is not None and not isinstance(found, str):
        raise ValueError(f"the answer's {name} is not a text")
    return found


def _number(document: dict[str, object], name: str) -> int | None:
    found = document.get(name)
    if found is not None and (not isinstance(found, int) or isinstance(found, bool) or found < 0):
        raise ValueError(f"the answer's {name} is not a whole number")
    return found
