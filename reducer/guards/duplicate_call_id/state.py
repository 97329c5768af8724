"""The state of the duplicate-call-id guard, and its snapshot."""

from collections.abc import Mapping
from typing import NamedTuple

from reducer.guards.duplicate_call_id.names import CallNames, document_of, names_of
from reducer.guards.modes import check_mode, check_route
from reducer.guards.snapshot import Document, Snapshot, beginning, seal, unseal
from reducer.vocabulary import GuardPhase, Mode, Route

GUARD = "duplicate_call_id"
SCHEMA = 1
SUFFIX = "__dup_"
GENERATED_PREFIX = "call_gen_"
_NONE_ANSWERED: Mapping[str, int] = {}


class DuplicateCallId(NamedTuple):
    """The state of a session: its ids, and what was answered in the running prompt.

    `answered` numbers the ids whose replay was answered, from 1, in order. `phase` is of the
    running prompt. A state holds ids and digests, never arguments.
    """

    mode: Mode
    route: Route
    names: CallNames
    answered: Mapping[str, int] = _NONE_ANSWERED
    phase: GuardPhase = GuardPhase.IDLE
    is_enforcement_disabled: bool = False

    @classmethod
    def start(
        cls,
        mode: Mode,
        *,
        route: Route = Route.INTERACTIVE_FOREGROUND,
        suffix: str = SUFFIX,
        generated_prefix: str = GENERATED_PREFIX,
    ) -> "DuplicateCallId":
        """Return the state of a new session.

        `suffix` and a number name the later calls of an id, `generated_prefix` and a number the
        calls without one. The route decides how a dropped batch ends the turn, not the mode:
        a host that may guard only the foreground asks `modes.mode_on` first.

        Raises:
            ValueError: the mode or the route is a plain text, or an empty suffix or prefix.
        """
        check_mode(GUARD, mode)
        check_route(route)
        given: dict[str, object] = {"suffix": suffix, "generated_prefix": generated_prefix}
        for name, text in given.items():
            if not isinstance(text, str) or not text:
                raise ValueError(f"{name} is {text!r}; give a text of one character or more")
        return cls(mode, route, CallNames(suffix, generated_prefix))

    @property
    def acts_as(self) -> Mode:
        """The mode that decides: warn in place of enforce while enforcement is disabled."""
        return self.mode.at_most(Mode.WARN) if self.is_enforcement_disabled else self.mode


def dump(state: DuplicateCallId) -> Document:
    """Return the state as plain JSON values."""
    fields: Document = {
        "mode": state.mode.value,
        "route": state.route.value,
        **document_of(state.names),
        "answered": list(state.answered),
        "phase": state.phase.value,
        "is_enforcement_disabled": state.is_enforcement_disabled,
    }
    return seal(GUARD, SCHEMA, fields)


def restore(document: object) -> DuplicateCallId:
    """Return the state that was dumped.

    A snapshot of a newer schema gives a new session in its mode and route as far as they can be
    read, with enforcement disabled for the running prompt.

    Raises:
        ValueError: the document is damaged or another guard's; naming the field.
    """
    snapshot = unseal(document, guard=GUARD, schema=SCHEMA)
    if snapshot is None:
        mode, route = beginning(document)  # type: ignore[arg-type]  # unseal saw a mapping
        return DuplicateCallId.start(mode, route=route)._replace(is_enforcement_disabled=True)
    state = DuplicateCallId(
        mode=snapshot.word("mode", Mode),
        route=snapshot.word("route", Route),
        names=names_of(snapshot),
        answered=_answered(snapshot),
        phase=snapshot.word("phase", GuardPhase),
        is_enforcement_disabled=snapshot.flag("is_enforcement_disabled"),
    )
    if any(each not in state.names.ids for each in state.answered):
        raise snapshot.damaged("answered", "ids that are among ids")
    return state


def _answered(snapshot: Snapshot) -> Mapping[str, int]:
    found = [each for each in snapshot.items("answered") if isinstance(each, str)]
    answered = {each: number for number, each in enumerate(found, start=1)}
    if len(answered) != len(snapshot.items("answered")):
        raise snapshot.damaged("answered", "a list of different texts")
    return answered
