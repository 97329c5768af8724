"""Request bodies: the encoding, compression and size of an OTLP/HTTP request."""

import zlib
from collections.abc import Iterable, Iterator
from typing import ClassVar, Protocol

from guardwave.control_plane.core.otlp_request import BrokenChunks, Encoding, Limits, SlowBody

PIECE = 64 * 1024
GZIP_MEMBERS = 1024
ACCEPTED_CONTENT_ENCODINGS = "gzip, deflate"

_GZIP = 31
_ZLIB = 15
_WINDOWS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _ZLIB}


class WireError(ValueError):
    """A request whose bytes cannot be used; `status` is the HTTP status of the answer."""

    status: ClassVar[int] = 400


class BadBody(WireError):
    """The body is broken: truncated, not the announced compression, or undecodable."""


class TooSlow(WireError):
    """The body arrived too slowly: nothing of it is used, and it may be sent again."""

    status = 503


class TooLarge(WireError):
    """The body is over a limit. Final for OTLP clients: they drop the batch and do not retry."""

    status = 413


class UnsupportedEncoding(WireError):
    """A content type or a content encoding that this door does not read."""

    status = 415


class ByteStream(Protocol):
    """The `wsgi.input` of WSGI."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, and none at the end."""
        ...


def encoding_of(content_type: str | None) -> Encoding:
    """Return the encoding a Content-Type header names.

    Raises UnsupportedEncoding for any other type, and for none.
    """
    known = Encoding.of(content_type)
    if known is None:
        raise UnsupportedEncoding(
            f"content type {(content_type or '')[:80]!r} is not read here; "
            "send application/x-protobuf or application/json"
        )
    return known


def read_body(
    stream: ByteStream,
    *,
    content_length: int | None,
    content_encoding: str | None,
    limits: Limits,
) -> bytes:
    """Return the whole body, decompressed, and never hold more than the limits allow.

    `content_length` is None for a chunked request, whose stream must end by itself
    (`wsgi.input_terminated`). Both limits hold while reading, so neither a chunked body nor a
    compressed one can pass them. Raises TooLarge, UnsupportedEncoding or BadBody.
    """
    coding = (content_encoding or "").strip().lower()
    if coding not in _WINDOWS and coding not in {"", "identity"}:
        raise UnsupportedEncoding(
            f"content encoding {coding[:80]!r} is not read here; send gzip, deflate or none"
        )
    if content_length is not None and content_length > limits.wire_bytes:
        raise _over_wire(limits)
    pieces = _pieces(stream, content_length, limits=limits)
    if coding in _WINDOWS:
        return b"".join(_inflated(pieces, _WINDOWS[coding], limits=limits))
    return b"".join(pieces)


def _over_wire(limits: Limits) -> TooLarge:
    return TooLarge(
        f"the body is over {limits.wire_bytes} bytes as sent; "
        "lower the exporter's batch size or turn on gzip"
    )


def _pieces(stream: ByteStream, content_length: int | None, *, limits: Limits) -> Iterator[bytes]:
    total = 0
    while content_length is None or total < content_length:
        # a server that keeps the connection alive blocks on a read past the announced length
        wanted = PIECE if content_length is None else min(PIECE, content_length - total)
        try:
            piece = stream.read(wanted)
        except SlowBody as slow:
            raise TooSlow(f"{slow.strerror}; send it again") from slow
        except BrokenChunks as broken:
            raise BadBody(broken.strerror) from broken
        except OSError as broken:
            raise BadBody("the body broke off while it was read; send it again") from broken
        if not piece:
            break
        total += len(piece)
        if total > limits.wire_bytes:
            raise _over_wire(limits)
        yield piece
    if content_length is not None and total < content_length:
        raise BadBody(
            f"the body ended after {total} of {content_length} announced bytes; send it again"
        )


def _inflated(pieces: Iterable[bytes], window: int, *, limits: Limits) -> Iterator[bytes]:
    """Decompress piece by piece; gzip may be several members in a row (RFC 1952, 2.2)."""
    inflater = zlib.decompressobj(window)
    room = limits.inflated_bytes
    members, begun = 1, False
    for piece in pieces:
        rest = piece
        while rest:
            if inflater.eof:
                members += 1
                if window != _GZIP or members > GZIP_MEMBERS:
                    raise BadBody("the compressed body goes on after its end; send one stream")
                inflater = zlib.decompressobj(window)
            begun = True
            try:
                block = inflater.decompress(rest, room + 1)
            except zlib.error as broken:
                raise BadBody("the body is not of its content encoding; check it") from broken
            room -= len(block)
            if room < 0:
                raise TooLarge(
                    f"the body is over {limits.inflated_bytes} bytes when decompressed; "
                    "lower the exporter's batch size"
                )
            yield block
            rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
    if begun and not inflater.eof:
        raise BadBody("the compressed body ends too early; send it again")
