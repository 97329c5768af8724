"""Log records written byte by byte, some as no exporter writes them."""

from struct import pack

from guardwave.reducer import contract
from tests.support.otlp.bodies import NOW_NS
from tests.support.otlp.repeated_records import field


def text(value: str) -> bytes:
    """The content of an AnyValue."""
    return field(1, value.encode())


def number(value: int) -> bytes:
    """The content of an AnyValue: a number of 128 to 16383, which takes two bytes."""
    return bytes((0x18, value & 0x7F | 0x80, value >> 7))


def usual(key: bytes, value: bytes) -> bytes:
    """The content of a KeyValue as exporters write it."""
    return field(1, key) + field(2, value)


def attribute(key: str, value: str) -> bytes:
    return usual(key.encode(), text(value))


PROMPT = attribute(contract.PROMPT_ID, "p-1")


def time(time_ns: int) -> bytes:
    return b"\x09" + pack("<Q", time_ns)


def record_of(event: str, *attributes: bytes, padding: bytes = b"") -> bytes:
    """A LogRecord of NOW with exactly these attributes, each the content of a KeyValue."""
    content = b"".join(field(6, pair) for pair in attributes)
    return time(NOW_NS) + content + padding + field(12, event.encode())


def start(*attributes: bytes, padding: bytes = b"") -> bytes:
    return record_of("agent.guard.prompt.start", *attributes, padding=padding)
