"""guardwave's web worker, answering every OTLP request without decoding its body: `unread:app`."""

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from control_plane import wsgi
from control_plane.access import Identity
from control_plane.ingest.answers import Signal
from control_plane.ingest.door import Door
from control_plane.ingest.intake import Receipt
from control_plane.otlp_door import Encoding


class UnreadDoor(Door):
    """Authorises, reads and inflates as the real door does, and forgets the body."""

    def _take(self, signal: Signal, encoding: Encoding, body: bytes, sender: Identity) -> Receipt:
        del signal, encoding, body, sender
        return Receipt(0, ())


wsgi.Door = UnreadDoor


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer one request."""
    return wsgi.app(environ, start_response)
