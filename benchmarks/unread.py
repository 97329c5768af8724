"""Unread bodies: the web worker with a door that decodes no OTLP request, as `unread:app`."""

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.control_plane.ingest.door import Door, Signal
from guardwave.control_plane.ingest.intake import Receipt
from guardwave.control_plane.rollouts.access import Identity
from guardwave.control_plane.server import wsgi


class UnreadDoor(Door):
    """Authorises, reads and inflates as the real door does, and forgets the body."""

    def _receive(
        self, signal: Signal, encoding: Encoding, body: bytes, sender: Identity
    ) -> Receipt:
        del signal, encoding, body, sender
        return Receipt(0, ())


wsgi.Door = UnreadDoor


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer one request."""
    return wsgi.app(environ, start_response)
