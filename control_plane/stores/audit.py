"""Audit chain: its stored entries and their verification, without the store."""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple


class StoredEntry(NamedTuple):
    """One entry of the stream: its canonical JSON, and the hash written beside it."""

    text: str
    hash: str


class ChainFault(NamedTuple):
    """The first broken place of a chain, counted from 1, and what is wrong there."""

    place: int
    sentence: str


def verify(chain: Sequence[StoredEntry], *, head: str) -> ChainFault | None:
    """Return the first fault of a chain, None if it is intact; `chain` begins at its first entry.

    `head` is the hash of the last entry according to the environment ("" for no entry), so that
    entries missing at the end are noticed. An edit, a drop and a swap each break a hash, a link or
    the numbering.
    """
    previous = ""
    for place, entry in enumerate(chain, start=1):
        sentence = _fault(entry, place, previous)
        if sentence is not None:
            return ChainFault(place, sentence)
        previous = entry.hash
    if previous != head:
        return ChainFault(
            len(chain) + 1, f"the environment's head is {head!r}, the chain ends with {previous!r}"
        )
    return None


def _fault(entry: StoredEntry, place: int, previous: str) -> str | None:
    computed = sha256(entry.text.encode()).hexdigest()
    if computed != entry.hash:
        return f"the entry's hash is {computed}, {entry.hash} is written beside it"
    fields = json.loads(entry.text)
    if fields.get("previous") != previous:
        return f"it follows {fields.get('previous')!r}, the entry before it is {previous!r}"
    if fields.get("sequence") != place:
        return f"its number is {fields.get('sequence')}, not {place}"
    return None
