"""Every call id that a session has seen, what first ran under it, and the names given locally.

The ids grow with the session while each batch adds a few, so they are kept in layers: a batch adds
one, and two are joined when the newer one has grown to half the older. A batch then costs the
logarithm of what is known, and no state is changed by the one that follows it.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from reducer.guards.canonical import DIGEST_BYTES
from reducer.guards.snapshot import Document, Snapshot

# The digest of a call whose arguments nobody could read: it equals no other call.
UNREADABLE = b""


class Layers(Mapping[str, bytes | None]):
    """Ids with the digest of the call that first ran under them; None for an id without one.

    Two are equal when they hold the same, however it is layered.
    """

    __slots__ = ("_layers",)

    def __init__(self, *layers: dict[str, bytes | None]) -> None:
        self._layers = layers

    def plus(self, added: dict[str, bytes | None]) -> "Layers":
        """Return these ids and the added ones; an added digest replaces the one before."""
        if not added:
            return self
        layers = list(self._layers)
        while layers and len(layers[-1]) <= 2 * len(added):
            added = {**layers.pop(), **added}
        return Layers(*layers, added)

    def __getitem__(self, name: str) -> bytes | None:
        for layer in reversed(self._layers):
            if name in layer:
                return layer[name]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        # Not `any` over a generator, which costs more than the few look-ups do.
        for layer in self._layers:  # noqa: SIM110  # as above
            if name in layer:
                return True
        return False

    def __iter__(self) -> Iterator[str]:
        seen: set[str] = set()
        for layer in self._layers:
            yield from (name for name in layer if name not in seen)
            seen.update(layer)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Layers({dict(self)!r})"


_NO_IDS = Layers()
_NO_SUFFIXES: Mapping[str, int] = {}


class CallNames(NamedTuple):
    """The ids of a session, and how far numbering has come.

    `last_suffix` holds, for an id that was suffixed, the last number tried, and `last_generated`
    the last number of a generated name: names are never given back, so none below it is free.
    """

    suffix: str
    generated_prefix: str
    ids: Layers = _NO_IDS
    last_suffix: Mapping[str, int] = _NO_SUFFIXES
    last_generated: int = 0


class Naming:
    """The names of one batch while it is decided: reads what is known, gathers what is new."""

    __slots__ = ("_added", "_known", "_last_generated", "_last_suffix", "is_any_recorded")

    def __init__(self, known: CallNames) -> None:
        self._known = known
        self._added: dict[str, bytes | None] = {}
        self._last_suffix: dict[str, int] = {}
        self._last_generated = known.last_generated
        self.is_any_recorded = False

    def first(self, call_id: str) -> bytes | None:
        """Return the digest of the call that first ran under an id, None when none did."""
        found = self._added.get(call_id)
        if found is None and call_id in self._known.ids:
            return self._known.ids[call_id]
        return found

    def take(self, call_id: str | None) -> str:
        """Return the next free name for an id, and keep it from others (docs/guards)."""
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
        """Keep the digest of the call that runs first under an id."""
        self._added[call_id] = digest
        self.is_any_recorded = True

    def reserve(self, call_id: str) -> None:
        """Keep an id from others without a call that ran under it."""
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
    """Return a fingerprint's bytes, half as large as its text; `UNREADABLE` for None.

    Raises:
        ValueError: it is none that `ToolCall.of` gives.
    """
    if fingerprint is None:
        return UNREADABLE
    try:
        digest = bytes.fromhex(fingerprint)
    except (TypeError, ValueError):
        digest = UNREADABLE
    if len(digest) != DIGEST_BYTES:
        raise ValueError(
            f"fingerprint is not the text of {DIGEST_BYTES} bytes in hex; make calls by ToolCall.of"
        )
    return digest


def document_of(names: CallNames) -> Document:
    """Return the names as plain JSON values; a digest in hex, null for an id without one."""
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
        ValueError: a field is damaged, naming it.
    """
    ids = {name: _digest(snapshot, found) for name, found in snapshot.mapping("ids").items()}
    last_suffix = Snapshot(snapshot.guard, snapshot.mapping("last_suffix"))
    suffix, generated_prefix = snapshot.text("suffix"), snapshot.text("generated_prefix")
    for name, text in (("suffix", suffix), ("generated_prefix", generated_prefix)):
        if not text:
            raise snapshot.damaged(name, "a text of one character or more")
    return CallNames(
        suffix,
        generated_prefix,
        Layers(ids),
        {name: last_suffix.whole(name) for name in last_suffix.fields},
        snapshot.whole("last_generated"),
    )


def _digest(snapshot: Snapshot, found: object) -> bytes | None:
    if found is None:
        return None
    if found == "":
        return UNREADABLE
    try:
        return digest_of(found)  # type: ignore[arg-type]  # it is checked there
    except ValueError as wrong:
        raise snapshot.damaged("ids", "ids with a digest in hex or null") from wrong
