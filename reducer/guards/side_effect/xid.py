"""XID: the declared identity of an act, its first use, and candidates that look like the act.

An XID says who did what to which thing, in every conversation and channel. The rules of
normalisation are in `docs/guards/side_effect_duplicate.md`, with vectors in
`tests/fixtures/xid_vectors.json`. A change to a rule needs a new scheme.
"""

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple, Protocol, TypeAlias

from guardwave.reducer.guards.side_effect.repeat import FirstUse
from guardwave.reducer.rollout.fields import length_prefixed

SCHEME = "guardwave-xid-1"
DIGEST_BYTES = 16
_SPACE = re.compile(r"\s+")
# Paths with their normalised values, in order of path.
Fields: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]


class FirstUseStore(Protocol):
    """The host's store of first uses, shared by all its conversations and channels."""

    def read(self, key: str) -> FirstUse | None:
        """Return the first use under a key in one look-up, None without one."""
        ...


@dataclass(frozen=True, slots=True)
class XidDeclaration:
    """The arguments of a tool that identify an act.

    `identity` names the kind of act (`refund`); tools that do the same thing share it. `resource`
    is the path of the argument with the id of the thing acted upon. `fields` are the paths of the
    arguments that distinguish two acts on one thing. A path is made of the keys of nested objects,
    joined by dots.
    """

    identity: str
    resource: str
    fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, text in (("identity", self.identity), ("resource", self.resource)):
            if not text.strip():
                raise ValueError(f"{name} is {text!r}; name what the tool does, and to which field")
        if len(set(self.fields)) < len(self.fields):
            raise ValueError(f"fields {self.fields!r} name one twice; name each once")


def xid_of(declaration: XidDeclaration, arguments: object, *, person: str | None) -> str | None:
    """Return the key of an act (32 hex digits, 128-bit BLAKE2b), or None if a part is unknown.

    `person` is the host's id of the person served, the same in every channel. Without it, or if
    the resource or a field is missing, null, blank or an object, nobody can say that two acts are
    the same, so there is no key.
    """
    if person is None or not person.strip():
        return None
    resource = _resource(_value_at(arguments, declaration.resource))
    if resource is None:
        return None
    parts = [SCHEME, person, declaration.identity, resource]
    for name in sorted(declaration.fields):
        values = normalise(_value_at(arguments, name))
        if values is None:
            return None
        parts += [name, str(len(values)), *values]
    try:
        return blake2b(length_prefixed(*parts), digest_size=DIGEST_BYTES).hexdigest()
    except UnicodeEncodeError:
        # Half a surrogate pair: a model can write it, but UTF-8 cannot encode it.
        return None


def first_use(store: FirstUseStore, xid: str | None) -> FirstUse | None:
    """Return the first use of an act, with one look-up; an act without a key has none."""
    return None if xid is None else store.read(xid)


def normalise(value: object) -> tuple[str, ...] | None:
    """Return a field's values as sorted texts, or None if it has no usable value.

    Text is NFKC, case-folded, trimmed, with one space for each run of white space. A number becomes
    its shortest decimal text (10.0 is 10), so 42 and "42" are equal. One value equals a list of
    it. The order of a list does not count, the number of equal values does.
    """
    values = value if isinstance(value, list | tuple) else (value,)
    texts = [_text(item) for item in values]
    usable = [text for text in texts if text]
    return tuple(sorted(usable)) if usable and len(usable) == len(texts) else None


def field_values(arguments: object, paths: tuple[str, ...]) -> Fields:
    """Return the paths with usable values, in order of name, with those values."""
    fields = ((path, normalise(_value_at(arguments, path))) for path in sorted(paths))
    return tuple((path, values) for path, values in fields if values is not None)


def _value_at(arguments: object, path: str) -> object:
    for name in path.split("."):
        if not isinstance(arguments, Mapping):
            return None
        arguments = arguments.get(name)
    return arguments


def _text(value: object) -> str | None:
    if isinstance(value, str):
        folded = unicodedata.normalize("NFKC", value).casefold()
        # Folding may leave a text that is no longer in normal form.
        return _SPACE.sub(" ", unicodedata.normalize("NFKC", folded)).strip()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() else repr(value)
    return None


def _resource(value: object) -> str | None:
    # Ids of things may differ in case only, so just the invisible differences are removed.
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value).strip() or None
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


class Candidate(NamedTuple):
    """An earlier successful run that a finder took for the same act, with its thread."""

    thread: str
    use: FirstUse


class CandidateFinder(Protocol):
    """The host's search among earlier runs of one thread."""

    def find(self, thread: str, tool: str, fields: Fields) -> Candidate | None:
        """Return the most similar earlier run, None if no run is similar enough.

        `fields` are (path, values) pairs in order of path, normalised as for an XID (`normalise`).
        """
        ...


def find_candidate(
    finder: CandidateFinder,
    thread: str | None,
    *,
    tool: str,
    arguments: object,
    paths: tuple[str, ...],
) -> Candidate | None:
    """Return the finder's candidate for a call; none outside a thread or without a field."""
    if thread is None or not thread.strip():
        return None
    fields = field_values(arguments, paths)
    return finder.find(thread, tool, fields) if fields else None
