"""Assignment answers: the value that a host holds, read from the server's JSON."""

import json
from dataclasses import dataclass

from guardwave.reducer.vocabulary import Mode

MOST_TTL_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Assignment:
    """The mode of one owner under one guard. It is immutable, so holding it pins the mode.

    `reasons` are codes, most important first; `sentence` is for people.
    `is_fallback`: the client made this answer, not the control plane; the mode is shadow, and
    `reasons` holds one `FallbackReason`.
    Echo `assignment_id` in telemetry, unless it is None.
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
        ValueError: it is not JSON, a member is missing or has another type, the mode is unknown,
            or a mode above shadow has no generation to compare with older ones.
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
    if not isinstance(reasons, list) or not all(isinstance(reason, dict) for reason in reasons):
        raise ValueError("its reasons are not a list of objects")
    codes = tuple(_text(reason, "code") for reason in reasons)
    if None in codes:
        raise ValueError("one of its reasons has no code")
    return tuple(code for code in codes if code is not None)


def _text(document: dict[str, object], name: str) -> str | None:
    value = document.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"its {name} is not a text")
    return value


def _number(document: dict[str, object], name: str) -> int | None:
    value = document.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise ValueError(f"its {name} is not a whole number from 0")
    return value
