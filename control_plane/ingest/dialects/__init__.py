"""Dialects: the telemetry of one kind of host each, turned into the records of the domain."""

from collections.abc import Sequence
from itertools import chain

from guardwave.control_plane.ingest.dialects.dialect import (
    Accepted,
    Dialect,
    ItemContext,
    ReadResult,
    Scopes,
)
from guardwave.control_plane.ingest.dialects.native import NativeDialect
from guardwave.control_plane.ingest.dialects.qwen_code import QwenCodeDialect

__all__ = [
    "DIALECTS",
    "Accepted",
    "Dialect",
    "ItemContext",
    "ReadResult",
    "wanted_scopes",
]


DIALECTS: tuple[Dialect, ...] = (NativeDialect(), QwenCodeDialect())


def wanted_scopes(dialects: Sequence[Dialect] = DIALECTS) -> Scopes:
    """Return the scopes that any of the dialects reads."""
    every = [dialect.scopes for dialect in dialects]
    return Scopes(
        logs=frozenset(chain.from_iterable(scopes.logs for scopes in every)),
        points=frozenset(chain.from_iterable(scopes.points for scopes in every)),
        spans=frozenset(chain.from_iterable(scopes.spans for scopes in every)),
    )
