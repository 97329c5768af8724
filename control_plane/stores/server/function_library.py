"""Function libraries: the store's Lua functions, loaded when missing and called by name.

Every version of the source has names of its own, so that a server of another version on the same
store neither loses its functions nor calls ours: machines can be upgraded one after the other.
"""

import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

import redis

from guardwave.control_plane.core.errors import StoreStartError
from guardwave.control_plane.stores.server.clients import primaries

MISSING = "Function not found"
PREFIX = "gw_"
# Where a version is put into the source: before each function's name and the library's.
_NAME_START = re.compile(rf"(?<=')(?={PREFIX})|(?<=#!lua name=)")


class Library(NamedTuple):
    """One folder of Lua: the library's name, from its first line, and the whole source."""

    name: str
    source: str


@cache
def libraries() -> tuple[Library, ...]:
    """Return the shipped libraries with versioned names, in order of their folders."""
    folders = sorted(
        (resources.files("guardwave.control_plane.stores") / "lua").iterdir(),
        key=lambda folder: folder.name,
    )
    sources = [_join_files(folder) for folder in folders]
    versioned = [_NAME_START.sub(f"{_version(sources)}_", source) for source in sources]
    return tuple(Library(_name(source), source) for source in versioned)


def _join_files(folder: Traversable) -> str:
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def _version(sources: Sequence[str]) -> str:
    return f"v{sha256(''.join(sources).encode()).hexdigest()[:10]}"


@cache
def full_name(function: str) -> str:
    """Return the name on the server of a function such as `gw_commit`."""
    name = libraries()[0].name
    return f"{name.partition('_')[0]}_{function}"


def load_functions(client: redis.Redis) -> bool:
    """Load each library that a server does not hold; return whether one was loaded.

    On a cluster, every node that takes writes needs them; replicas copy theirs.

    Raises:
        StoreStartError: the server rejects a library.
    """
    loaded = [
        library.name
        for server in primaries(client)
        for library in libraries()
        if _load(server, library)
    ]
    return bool(loaded)


def _load(client: redis.Redis, library: Library) -> bool:
    try:
        held = client.function_list(library=library.name, withcode=True)
        if any(_code(entry) == library.source for entry in held):
            return False
        client.function_load(library.source, replace=True)
    except redis.ResponseError as error:
        raise StoreStartError(
            f"the store rejects the function library {library.name!r} ({error}); use Redis >= 7.0 "
            "or Valkey >= 7.2 and a user that may run FUNCTION and FCALL"
        ) from error
    return True


def call(
    client: redis.Redis,
    name: str,
    *,
    keys: Sequence[str] = (),
    arguments: Sequence[bytes | str | int] = (),
) -> object:
    """Call a function; load the libraries again when the server has lost them."""
    name = full_name(name)
    try:
        return client.fcall(name, len(keys), *keys, *arguments)
    except redis.ResponseError as error:
        if not is_missing_function(error):
            raise
    load_functions(client)
    return client.fcall(name, len(keys), *keys, *arguments)


def is_missing_function(error: redis.ResponseError) -> bool:
    """Whether a call failed because its library is gone, as after FUNCTION FLUSH."""
    return MISSING in str(error)


def _name(source: str) -> str:
    return source.partition("\n")[0].partition("name=")[2].strip()


def _code(entry: Sequence[bytes | str]) -> str:
    """Return the source from RESP2's flat list of names and values."""
    code = dict(zip(entry[::2], entry[1::2], strict=False)).get(b"library_code", b"")
    return code.decode() if isinstance(code, bytes) else code
