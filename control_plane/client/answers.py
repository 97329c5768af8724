"""An assignment as a host holds it, and how the server's answer is read."""

import json
from dataclasses import dataclass

from reducer.vocabulary import Mode

MOST_TTL_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which mode one owner has under one guard. It never changes: hold it and it is pinned.

    `reasons` are codes, most important first; `sentence` is for people.
    `is_fallback`: the control plane did not say this, the client did; the mode is shadow, and
    `reasons` holds the one `FallbackReason` for it.
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


def read(guard: str, body: bytes) -> Assignment:
    """Return the assignment of a server's answer.

    Raises:
        ValueError: it is not JSON, a member is missing, has another type or an unknown mode, or
            a mode above shadow has no generation that could be told from an older one.
    """
    document = _document(body)
    mode, generation = _mode(document), _number(document, "generation")
    if generation is None and mode.rank > Mode.SHADOW.rank:
        raise ValueError(f"its mode is {mode} and it names no generation")
    ttl_seconds = _number(document, "ttl_s")
    if not ttl_seconds:
        raise ValueError("its ttl_s is missing or 0, so it holds for no prompt")
    return Assignment(
        guard=guard,
        mode=mode,
        assignment_id=_text(document, "assignment_id"),
        generation=generation,
        cohort=_text(document, "cohort"),
        wave=_number(document, "wave") or 0,
        reasons=_codes(document),
        sentence=_text(document, "sentence") or "",
        ttl_seconds=float(min(ttl_seconds, MOST_TTL_SECONDS)),
    )


def _document(body: bytes) -> dict[str, object]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    return document


def _mode(document: dict[str, object]) -> Mode:
    try:
        return Mode(_text(document, "mode") or "")
    except ValueError:
        raise ValueError(f"its mode is none of {', '.join(Mode)}") from None


def _codes(document: dict[str, object]) -> tuple[str, ...]:
    reasons = document.get("reasons")
    if not isinstance(reasons, list) or not all(isinstance(each, dict) for each in reasons):
        raise ValueError("its reasons are not a list of objects")
    codes = tuple(_text(each, "code") for each in reasons)
    if None in codes:
        raise ValueError("one of its reasons has no code")
    return tuple(code for code in codes if code is not None)


def _text(document: dict[str, object], name: str) -> str | None:
    found = document.get(name)
    if found is not None and not isinstance(found, str):
        raise ValueError(f"its {name} is not a text")
    return found


def _number(document: dict[str, object], name: str) -> int | None:
    found = document.get(name)
    if found is not None and (not isinstance(found, int) or isinstance(found, bool) or found < 0):
        raise ValueError(f"its {name} is not a whole number from 0")
    return found
