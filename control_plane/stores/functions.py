"""The libraries of store functions: loaded when one is missing, called by name.

Every version of the source has names of its own, so that a server of another version on the same
store neither loses its functions nor calls ours: machines can be upgraded one after the other.
"""

import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import NamedTuple

import redis

from control_plane.errors import StoreStartError
from control_plane.stores.clients import primaries

MISSING = "Function not found"
SHEBANG = "#!lua "
PREFIX = "gw_"
_NAMED = re.compile(rf"(?<=')(?={PREFIX})|(?<=#!lua name=)")


class Library(NamedTuple):
    """Lua beside this module: the name in the first line of its first file, and its whole source.

    A file without such a line continues the library of the file before it.
    """

    name: str
    source: str


@cache
def libraries() -> tuple[Library, ...]:
    """Return the libraries as shipped, their names versioned, in order of their file names."""
    files = (file for file in resources.files(__package__).iterdir() if file.name.endswith(".lua"))
    sources: list[str] = []
    for file in sorted(files, key=lambda file: file.name):
        source = file.read_text(encoding="utf-8")
        if source.startswith(SHEBANG):
            sources.append(source)
        else:
            sources[-1] = f"{sources[-1]}\n{source}"
    versioned = [_NAMED.sub(f"{_version(sources)}_", source) for source in sources]
    return tuple(Library(_name(source), source) for source in versioned)


def _version(sources: Sequence[str]) -> str:
    return f"v{sha256(''.join(sources).encode()).hexdigest()[:10]}"


@cache
def full_name(function: str) -> str:
    """Return the name that a function has on the server, `gw_commit` for one."""
    name = libraries()[0].name
    return f"{name.partition('_')[0]}_{function}"


def load_functions(client: redis.Redis) -> bool:
    """Load each library that a server does not hold; answer whether one was loaded.

    Every node of a cluster that takes writes needs them; replicas get theirs from it.

    Raises:
        StoreStartError: the server refuses a library.
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
            f"the store refuses the function library {library.name!r} ({error}); use Redis >= 7.0 "
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
    """Call a function; the libraries are loaded again when the server has lost them."""
    name = full_name(name)
    try:
        return client.fcall(name, len(keys), *keys, *arguments)
    except redis.ResponseError as error:
        if not is_missing(error):
            raise
    load_functions(client)
    return client.fcall(name, len(keys), *keys, *arguments)


def is_missing(error: redis.ResponseError) -> bool:
    """Whether a call failed because its library is gone, as after FUNCTION FLUSH.

    Callers with a pipeline of their own ask this, load the functions and send it again.
    """
    return MISSING in str(error)


def _name(source: str) -> str:
    return source.partition("\n")[0].partition("name=")[2].strip()


def _code(entry: Sequence[bytes | str]) -> str:
    """Pick the source out of RESP2's flat list of names and values."""
    code = dict(zip(entry[::2], entry[1::2], strict=False)).get(b"library_code", b"")
    return code.decode() if isinstance(code, bytes) else code
