"""Duplicate-call-id state: ids, names and replays of a session, and its snapshot."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from guardwave.reducer.guards.calls import DIGEST_BYTES
from guardwave.reducer.guards.modes import check_mode, check_route
from guardwave.reducer.guards.snapshot import Document, Snapshot, seal, start_settings, unseal
from guardwave.reducer.vocabulary import GuardPhase, Mode, Route

GUARD = "duplicate_call_id"
SCHEMA = 1
SUFFIX = "__dup_"
GENERATED_PREFIX = "call_gen_"
# The digest of a call whose arguments cannot be read; the call equals no other.
UNREADABLE = b""


class LayeredIds(Mapping[str, bytes | None]):
    """Ids with the digest of the call that first ran under them, None for an id without a call.

    A session only adds ids, and every state is a value of its own. So adding shares the larger,
    older dicts instead of copying them. Equality ignores the layers.
    """

    __slots__ = ("_layers",)

    def __init__(self, *layers: dict[str, bytes | None]) -> None:
        self._layers = layers

    def plus(self, added: dict[str, bytes | None]) -> "LayeredIds":
        """Return these ids and the added ones; an added digest replaces an earlier one."""
        if not added:
            return self
        # Each layer stays more than twice as large as the next, so there are few of them.
        layers = list(self._layers)
        while layers and len(layers[-1]) <= 2 * len(added):
            added = {**layers.pop(), **added}
        return LayeredIds(*layers, added)

    def __getitem__(self, name: str) -> bytes | None:
        for layer in reversed(self._layers):
            if name in layer:
                return layer[name]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        # A generator for `any` would cost more than the few look-ups.
        for layer in self._layers:  # noqa: SIM110  # as above
            if name in layer:
                return True
        return False

    def __iter__(self) -> Iterator[str]:
        known: set[str] = set()
        for layer in self._layers:
            yield from (name for name in layer if name not in known)
            known.update(layer)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"LayeredIds({dict(self)!r})"


_NO_IDS = LayeredIds()
_NO_SUFFIXES: Mapping[str, int] = {}


class CallNames(NamedTuple):
    """The ids of a session and the last numbers of its generated names.

    `last_suffix` maps an id to its last suffix number, and `last_generated` is the last number of a
    generated name. No name is ever released, so no smaller number is free.
    """

    suffix: str
    generated_prefix: str
    ids: LayeredIds = _NO_IDS
    last_suffix: Mapping[str, int] = _NO_SUFFIXES
    last_generated: int = 0


class BatchNaming:
    """The names of one batch during its decision: it reads the known ones and collects new ones."""

    __slots__ = ("_added", "_known", "_last_generated", "_last_suffix", "is_any_recorded")

    def __init__(self, known: CallNames) -> None:
        self._known = known
        self._added: dict[str, bytes | None] = {}
        self._last_suffix: dict[str, int] = {}
        self._last_generated = known.last_generated
        self.is_any_recorded = False

    def first_digest(self, call_id: str) -> bytes | None:
        """Return the digest of the call that first ran under an id, None without such a call."""
        digest = self._added.get(call_id)
        if digest is None and call_id in self._known.ids:
            return self._known.ids[call_id]
        return digest

    def take(self, call_id: str | None) -> str:
        """Return the next free name for an id, and reserve it (`docs/guards`)."""
        if not call_id:
            return self._generated()
        if self._is_free(call_id):
            self._added[call_id] = None
            return call_id
        number = self._last_suffix.get(call_id) or self._known.last_suffix.get(call_id, 1)
        name, number = self._next(f"{call_id}{self._known.suffix}", number)
        self._last_suffix[call_id] = number
        return name

    def record(self, call_id: str, digest: bytes) -> None:
        """Record the digest of the first call that runs under an id."""
        self._added[call_id] = digest
        self.is_any_recorded = True

    def reserve(self, call_id: str) -> None:
        """Reserve an id without a call that ran under it."""
        if self._is_free(call_id):
            self._added[call_id] = None

    def done(self) -> CallNames:
        """Return the names known after the batch."""
        last_suffix = self._known.last_suffix
        if self._last_suffix:
            last_suffix = {**last_suffix, **self._last_suffix}
        return CallNames(
            self._known.suffix,
            self._known.generated_prefix,
            self._known.ids.plus(self._added),
            last_suffix,
            self._last_generated,
        )

    def _generated(self) -> str:
        name, self._last_generated = self._next(self._known.generated_prefix, self._last_generated)
        return name

    def _next(self, stem: str, number: int) -> tuple[str, int]:
        number += 1
        while not self._is_free(name := f"{stem}{number}"):
            number += 1
        self._added[name] = None
        return name, number

    def _is_free(self, name: str) -> bool:
        return name not in self._added and name not in self._known.ids


def digest_of(fingerprint: str | None) -> bytes:
    """Return the bytes of a fingerprint, half as large as its text; `UNREADABLE` for None.

    Raises:
        ValueError: the fingerprint is not from `ToolCall.of`.
    """
    if fingerprint is None:
        return UNREADABLE
    try:
        digest = bytes.fromhex(fingerprint)
    except (TypeError, ValueError):
        digest = UNREADABLE
    if len(digest) != DIGEST_BYTES:
        raise ValueError(
            f"fingerprint is not the text of {DIGEST_BYTES} bytes in hex; make calls by "
            "ToolCall.of (guardwave.guards)"
        )
    return digest


def document_of(names: CallNames) -> Document:
    """Return the names as plain JSON values, digests in hex and null for an id without one."""
    ids = {name: None if digest is None else digest.hex() for name, digest in names.ids.items()}
    return {
        "suffix": names.suffix,
        "generated_prefix": names.generated_prefix,
        "ids": ids,
        "last_suffix": dict(names.last_suffix),
        "last_generated": names.last_generated,
    }


def names_of(snapshot: Snapshot) -> CallNames:
    """Return the names of a snapshot.

    Raises:
        ValueError: a field is damaged; it names the field.
    """
    ids = {name: _digest(snapshot, text) for name, text in snapshot.mapping("ids").items()}
    last_suffix = Snapshot(snapshot.guard, snapshot.mapping("last_suffix"))
    suffix, generated_prefix = snapshot.text("suffix"), snapshot.text("generated_prefix")
    for name, text in (("suffix", suffix), ("generated_prefix", generated_prefix)):
        if not text:
            raise snapshot.damaged(name, "a text of one character or more")
    return CallNames(
        suffix,
        generated_prefix,
        LayeredIds(ids),
        {name: last_suffix.whole(name) for name in last_suffix.fields},
        snapshot.whole("last_generated"),
    )


def _digest(snapshot: Snapshot, text: object) -> bytes | None:
    if text is None:
        return None
    if text == "":
        return UNREADABLE
    try:
        return digest_of(text)  # type: ignore[arg-type]  # digest_of checks it
    except ValueError as wrong:
        raise snapshot.damaged("ids", "ids with a digest in hex or null") from wrong


_NO_ANSWERS: Mapping[str, int] = {}


class DuplicateCallId(NamedTuple):
    """The state of a session: its ids, and the answered replays of the running prompt.

    `answered` numbers the ids whose replay was answered, from 1 in order. `phase` belongs to the
    running prompt. A state holds ids and digests, never arguments.
    """

    mode: Mode
    route: Route
    names: CallNames
    answered: Mapping[str, int] = _NO_ANSWERS
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
        calls without an id. The route decides how a dropped batch ends the turn, but it does not
        change the mode: a host that guards only the foreground asks `modes.mode_on` first.

        Raises:
            ValueError: the mode or the route is a plain text, or the suffix or prefix is empty.
        """
        check_mode(GUARD, mode)
        check_route(route)
        texts: dict[str, object] = {"suffix": suffix, "generated_prefix": generated_prefix}
        for name, text in texts.items():
            if not isinstance(text, str) or not text:
                raise ValueError(f"{name} is {text!r}; give a text of one character or more")
        return cls(mode, route, CallNames(suffix, generated_prefix))

    @property
    def active_mode(self) -> Mode:
        """The mode that applies: warn instead of enforce while enforcement is disabled."""
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
    """Return the dumped state.

    A snapshot of a newer schema gives a new session in its mode and route as far as they can be
    read, with enforcement disabled for the running prompt.

    Raises:
        ValueError: the document is damaged or of another guard; it names the field.
    """
    snapshot = unseal(document, guard=GUARD, schema=SCHEMA)
    if snapshot is None:
        mode, route = start_settings(document)  # type: ignore[arg-type]  # unseal saw a mapping
        return DuplicateCallId.start(mode, route=route)._replace(is_enforcement_disabled=True)
    state = DuplicateCallId(
        mode=snapshot.word("mode", Mode),
        route=snapshot.word("route", Route),
        names=names_of(snapshot),
        answered=_answered(snapshot),
        phase=snapshot.word("phase", GuardPhase),
        is_enforcement_disabled=snapshot.flag("is_enforcement_disabled"),
    )
    if any(call_id not in state.names.ids for call_id in state.answered):
        raise snapshot.damaged("answered", "ids that are among ids")
    return state


def _answered(snapshot: Snapshot) -> Mapping[str, int]:
    ids = [item for item in snapshot.items("answered") if isinstance(item, str)]
    answered = {call_id: number for number, call_id in enumerate(ids, start=1)}
    if len(answered) != len(snapshot.items("answered")):
        raise snapshot.damaged("answered", "a list of different texts")
    return answered
