"""XID: who did what to which thing, as one key, whatever the conversation or channel.

The rules of normalisation are on docs/guards/side_effect_duplicate.md, with vectors in
tests/fixtures/xid_vectors.json. A change to any of them gets a new scheme.
"""

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from reducer.guards.side_effect.repeat import FirstUse
from reducer.rollout.fields import length_prefixed

SCHEME = "guardwave-xid-1"
DIGEST_BYTES = 16
_SPACE = re.compile(r"\s+")


class FirstUseStore(Protocol):
    """What the host keeps of first uses, shared by all its conversations and channels."""

    def read(self, key: str) -> FirstUse | None:
        """Return the first use under a key in one look-up; None when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class XidDeclaration:
    """Which arguments of a tool say what is done, and to what.

    `identity` names the kind of act (`refund`): tools that do the same thing share it. `resource`
    is the path of the argument with the id of the thing acted upon, `fields` the paths of the
    arguments that tell two acts on one thing apart. A path is the names of nested objects' keys,
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
    """Return the key of an act (32 hex digits, 128-bit BLAKE2b), or None when a part is unknown.

    `person` is the host's id of the person served, the same in every channel. Without it, or with
    a resource or field that is missing, null, blank or an object, two acts can't be told to be
    the same: the layer is silent.
    """
    if person is None or not person.strip():
        return None
    resource = _resource(_at(arguments, declaration.resource))
    if resource is None:
        return None
    parts = [SCHEME, person, declaration.identity, resource]
    for name in sorted(declaration.fields):
        values = normalised(_at(arguments, name))
        if values is None:
            return None
        parts += [name, str(len(values)), *values]
    try:
        return blake2b(length_prefixed(*parts), digest_size=DIGEST_BYTES).hexdigest()
    except UnicodeEncodeError:
        # Half a surrogate pair: a model can write it, UTF-8 can't say it.
        return None


def first_use(store: FirstUseStore, xid: str | None) -> FirstUse | None:
    """Read the first use of an act once; an act without a key has none."""
    return None if xid is None else store.read(xid)


def normalised(value: object) -> tuple[str, ...] | None:
    """Return a field's values as sorted texts, or None when it says nothing.

    Text is NFKC, case-folded, trimmed, with one space for each run of white space. A number is its
    shortest decimal text (10.0 is 10), so 42 and "42" are equal. One value equals a list of it,
    and the order of a list does not count; how often a value is in it does.
    """
    values = value if isinstance(value, list | tuple) else (value,)
    found = [_text(each) for each in values]
    known = [each for each in found if each]
    return tuple(sorted(known)) if known and len(known) == len(found) else None


def field_values(
    arguments: object, paths: tuple[str, ...]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the paths that say something, in order of name, each with its normalised values."""
    found = ((path, normalised(_at(arguments, path))) for path in sorted(paths))
    return tuple((path, values) for path, values in found if values is not None)


def _at(arguments: object, path: str) -> object:
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
    # Ids of things may differ by case alone: only what no eye can see is taken away.
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value).strip() or None
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
