"""Store server: clients, typed replies, the function library and the embedded server."""

from guardwave.control_plane.stores.server.clients import connect, is_cluster
from guardwave.control_plane.stores.server.connection import (
    check_version,
    reply_bytes,
    reply_int,
    reply_pair,
    reply_parts,
    reply_text,
    translate_store_errors,
)
from guardwave.control_plane.stores.server.embedded import EmbeddedServer
from guardwave.control_plane.stores.server.function_library import call, load_functions

__all__ = [
    "EmbeddedServer",
    "call",
    "check_version",
    "connect",
    "is_cluster",
    "load_functions",
    "reply_bytes",
    "reply_int",
    "reply_pair",
    "reply_parts",
    "reply_text",
    "translate_store_errors",
]
