"""Repeated-failure state: the streak of one prompt, and its snapshot."""

from typing import NamedTuple

from guardwave.reducer.guards.modes import check_mode, check_route, mode_on
from guardwave.reducer.guards.repeated_failure.outcome import FailureKey
from guardwave.reducer.guards.snapshot import Document, Snapshot, seal, start_settings, unseal
from guardwave.reducer.vocabulary import GuardPhase, Mode, Route

GUARD = "repeated_tool_failure"
SCHEMA = 1
# Part of the contract, not settings: evidence for one limit is none for another.
FAILURE_LIMIT = 8
BATCH_LIMIT = 2


class RepeatedFailure(NamedTuple):
    """The guard within one prompt; `start` makes it, `reduce` moves it.

    `mode` is the configured mode, `off` on every route but the interactive foreground. `key` and
    the counts describe the streak; in `idle` they are None and 0. `candidate_ordinal` numbers the
    streaks of the prompt from 1, and `last_ordinal` is the newest number. With
    `is_enforcement_disabled` enforce behaves like warn until the prompt ends.
    """

    mode: Mode
    route: Route
    phase: GuardPhase = GuardPhase.IDLE
    key: FailureKey | None = None
    failure_count: int = 0
    batch_count: int = 0
    candidate_ordinal: int = 0
    last_ordinal: int = 0
    is_enforcement_disabled: bool = False

    @classmethod
    def start(cls, mode: Mode, *, route: Route = Route.INTERACTIVE_FOREGROUND) -> "RepeatedFailure":
        """Return the guard of a new prompt.

        Raises:
            ValueError: the mode or the route is a plain text; use parse_mode and Route.parse.
        """
        check_mode(GUARD, mode)
        check_route(route)
        return cls(mode_on(route, mode), route)


def dump(state: RepeatedFailure) -> Document:
    """Return the state as plain JSON values, which `restore` reads."""
    return seal(
        GUARD,
        SCHEMA,
        {
            "mode": state.mode.value,
            "route": state.route.value,
            "phase": state.phase.value,
            "tool": None if state.key is None else state.key.tool,
            "error_type": None if state.key is None else state.key.error_type,
            "failure_count": state.failure_count,
            "batch_count": state.batch_count,
            "candidate_ordinal": state.candidate_ordinal,
            "last_ordinal": state.last_ordinal,
            "is_enforcement_disabled": state.is_enforcement_disabled,
        },
    )


def restore(document: Document) -> RepeatedFailure:
    """Return the state that `dump` wrote.

    A document of a newer schema gives a new state of its mode with enforcement disabled.

    Raises:
        ValueError: the document is damaged, or no possible state of the guard; it names the field.
    """
    snapshot = unseal(document, guard=GUARD, schema=SCHEMA)
    if snapshot is None:
        mode, route = start_settings(document)
        return RepeatedFailure.start(mode, route=route)._replace(is_enforcement_disabled=True)
    route = snapshot.word("route", Route)
    state = RepeatedFailure(
        mode_on(route, snapshot.word("mode", Mode)),
        route,
        snapshot.word("phase", GuardPhase),
        _key(snapshot),
        snapshot.whole("failure_count"),
        snapshot.whole("batch_count"),
        candidate_ordinal=snapshot.whole("candidate_ordinal"),
        last_ordinal=snapshot.whole("last_ordinal"),
        is_enforcement_disabled=snapshot.flag("is_enforcement_disabled"),
    )
    contradiction = _contradiction(state)
    if contradiction is not None:
        raise snapshot.damaged(*contradiction)
    return state


def _key(snapshot: Snapshot) -> FailureKey | None:
    tool, error_type = snapshot.optional_text("tool"), snapshot.optional_text("error_type")
    if tool is None and error_type is None:
        return None
    if tool is None or error_type is None:
        missing = "tool" if tool is None else "error_type"
        raise snapshot.damaged(missing, "there together with the other half of the key")
    return FailureKey(tool, error_type)


def _contradiction(state: RepeatedFailure) -> tuple[str, str] | None:
    """Return the first field that contradicts the phase: a broken state must never stop a turn."""
    least_failures, least_batches = _LEAST[state.phase]
    is_idle = state.phase is GuardPhase.IDLE
    checks = (
        ("tool", "null in idle and a text elsewhere", (state.key is None) == is_idle),
        ("failure_count", f"at least {least_failures}", state.failure_count >= least_failures),
        ("batch_count", f"at least {least_batches}", state.batch_count >= least_batches),
        (
            "batch_count",
            "no more than failure_count",
            state.batch_count <= state.failure_count,
        ),
        ("failure_count", "0 in idle", not is_idle or state.failure_count == 0),
        ("candidate_ordinal", "0 in idle only", (state.candidate_ordinal == 0) == is_idle),
        ("last_ordinal", "the newest one", state.candidate_ordinal <= state.last_ordinal),
    )
    return next(((name, expected) for name, expected, holds in checks if not holds), None)


# The least failures and batches of a streak in each phase.
_LEAST = {
    GuardPhase.IDLE: (0, 0),
    GuardPhase.TRACKING: (1, 1),
    GuardPhase.WARNED: (FAILURE_LIMIT, BATCH_LIMIT),
    GuardPhase.LATCHED: (FAILURE_LIMIT + 1, BATCH_LIMIT + 1),
}
