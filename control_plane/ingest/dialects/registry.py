"""The dialects that this guardwave reads, found by the scope of an item."""

from collections.abc import Sequence
from itertools import chain

from control_plane.ingest.dialects.dialect import Dialect, Scopes
from control_plane.ingest.dialects.native import NativeDialect
from control_plane.ingest.dialects.qwen_code import QwenCodeDialect

DIALECTS: tuple[Dialect, ...] = (NativeDialect(), QwenCodeDialect())


def wanted(dialects: Sequence[Dialect] = DIALECTS) -> Scopes:
    """Return the scopes that any of the dialects reads."""
    told = [dialect.scopes for dialect in dialects]
    return Scopes(
        logs=frozenset(chain.from_iterable(scopes.logs for scopes in told)),
        points=frozenset(chain.from_iterable(scopes.points for scopes in told)),
        spans=frozenset(chain.from_iterable(scopes.spans for scopes in told)),
    )
