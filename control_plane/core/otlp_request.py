"""OTLP request and answer: the values that pass between the HTTP server and intake."""

import errno
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

SIGNALS = ("logs", "metrics", "traces")


class Encoding(StrEnum):
    """The encoding of a request, and so of its answer (OTLP/HTTP, Response)."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"

    @classmethod
    def of(cls, content_type: str | None) -> "Encoding | None":
        """Return the encoding that a Content-Type header names; its parameters do not matter."""
        return _ENCODINGS.get((content_type or "").partition(";")[0].strip().lower())


_ENCODINGS = {
    "application/x-protobuf": Encoding.PROTOBUF,
    "application/protobuf": Encoding.PROTOBUF,
    "application/json": Encoding.JSON,
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request: bytes as sent, bytes after decompression, records or points."""

    wire_bytes: int = 8 * 1024 * 1024
    inflated_bytes: int = 16 * 1024 * 1024
    records: int = 10_000


class SlowBody(OSError):
    """Raised by a read of a body that comes too slowly; none of it is used."""

    def __init__(self, message: str) -> None:
        # gunicorn closes a connection that was reset without a word
        super().__init__(errno.ECONNRESET, message)


class TooManySlowSenders(SlowBody):
    """The sender is slow while many others are, too."""

    def __init__(self) -> None:
        super().__init__("too many bodies are arriving slowly")


class BodyTimeout(SlowBody):
    """The body did not arrive within the time that a request may take."""

    def __init__(self) -> None:
        super().__init__("the body did not arrive in the time that a request may take")


class BrokenChunks(OSError):
    """Raised by a read of a body whose chunks break HTTP's framing."""

    def __init__(self) -> None:
        # gunicorn closes a connection that was reset without a word
        super().__init__(
            errno.ECONNRESET,
            "the chunks of the body are not framed as HTTP has it (RFC 9112, 7.1); mend the sender "
            "or what is between, or send a Content-Length",
        )


class ByteStream(Protocol):
    """The interface of `wsgi.input`."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, and none at the end."""
        ...


@dataclass(frozen=True, slots=True)
class OtlpRequest:
    """One OTLP/HTTP POST, its body unread. `content_length` None: sent in chunks, or unreadable."""

    signal: str
    content_type: str | None
    content_encoding: str | None
    content_length: int | None
    stream: ByteStream
    authorization: str | None


@dataclass(frozen=True, slots=True)
class OtlpAnswer:
    """A whole answer; a rejection is a Status in the request's encoding."""

    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


OtlpDoor = Callable[[OtlpRequest], OtlpAnswer]


def signal_of(path: str, prefix: str = "") -> str | None:
    """Return the signal of a path such as `/v1/logs`, with an optional prefix or trailing slash."""
    tail = path.removesuffix("/")
    if prefix:
        tail = tail.removeprefix(prefix)
    if not tail.startswith("/v1/"):
        return None
    signal = tail[4:]
    return signal if signal in SIGNALS else None


def request_of(environ: Mapping[str, object], signal: str) -> OtlpRequest:
    """Return the request of a WSGI environment (PEP 3333)."""
    stream = environ["wsgi.input"]
    return OtlpRequest(
        signal=signal,
        content_type=_text(environ, "CONTENT_TYPE"),
        content_encoding=_text(environ, "HTTP_CONTENT_ENCODING"),
        content_length=_length(_text(environ, "CONTENT_LENGTH")),
        stream=stream,  # type: ignore[arg-type]  # PEP 3333 says that it reads so
        authorization=_text(environ, "HTTP_AUTHORIZATION"),
    )


def _text(environ: Mapping[str, object], name: str) -> str | None:
    found = environ.get(name)
    return found if isinstance(found, str) and found else None


def _length(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() else None
