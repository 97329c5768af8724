"""Chunked bodies as gunicorn reads them: a broken frame is a fault of the body, not of ours."""

from gunicorn.http.body import ChunkedReader
from gunicorn.http.errors import ParseException
from gunicorn.http.message import Request

from control_plane.otlp_door import BrokenChunks


class _Reader:
    """Reads chunks; what cannot be read as such ends the connection, after an answer."""

    def __init__(self, reader: ChunkedReader, request: Request) -> None:
        self._reader = reader
        self._request = request

    def read(self, size: int) -> bytes:
        try:
            return self._reader.read(size)
        except ParseException as broken:
            # Nobody knows where the next request would begin.
            self._request.force_close()
            raise BrokenChunks from broken


def watch_chunks(request: Request) -> None:
    """Let reads of a body whose chunks are malformed (RFC 9112, 7.1) raise BrokenChunks.

    gunicorn raises errors that are no OSError, which frameworks take for faults of the application.
    """
    body = request.body
    if body is not None and isinstance(body.reader, ChunkedReader):
        # of a reader gunicorn asks to read, and nothing else
        body.reader = _Reader(body.reader, request)  # type: ignore[assignment]  # as above
