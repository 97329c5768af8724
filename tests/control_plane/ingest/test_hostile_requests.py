"""Hostile requests: no bytes make the door fail, or take more memory or time than their size."""

import gzip
import subprocess
import sys
import textwrap
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from guardwave.control_plane.core.otlp_request import Encoding, Limits
from guardwave.control_plane.ingest.contract import fields
from guardwave.control_plane.ingest.decode.otlp_json import envelope
from guardwave.control_plane.ingest.decode.otlp_json.bodies import decode_logs
from guardwave.control_plane.ingest.model.rejections import ItemRejected
from guardwave.control_plane.ingest.wire.body import TooLarge
from guardwave.reducer import contract
from tests.support.hosts import Host
from tests.support.otlp.bodies import recorded

ANSWERED = {200, 400, 413}
SEEDS = sorted({found.body for found in recorded().values()}, key=len)[:24]
SIGNALS = ("logs", "metrics", "traces")
FUZZING = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
CODINGS: dict[str | None, Callable[[bytes], bytes]] = {
    None: bytes,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
}


@st.composite
def spoilt(draw: st.DrawFn) -> bytes:
    """A recorded body with some of its bytes changed, cut out, or there twice."""
    body = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, max(0, len(body) - 1)))
        size = draw(st.integers(0, 40))
        piece = bytes(body[start : start + size])
        other = draw(st.one_of(st.binary(max_size=12), st.just(b""), st.just(piece * 2)))
        body[start : start + size] = other
    return bytes(body)


BODIES = st.one_of(st.binary(max_size=300), spoilt())


@pytest.fixture
def host(context):
    return Host(context, limits=Limits(records=2000))


@FUZZING
@given(
    BODIES,
    st.sampled_from(SIGNALS),
    st.sampled_from(list(Encoding)),
    st.sampled_from(list(CODINGS)),
    st.integers(0, 20),
)
@example(b"", "logs", Encoding.JSON, "gzip", 0)
def test_any_body_is_answered_in_the_protocol(host, body, signal, encoding, coding, cut):
    packed = CODINGS[coding](body)
    sent = packed[: max(0, len(packed) - cut)]
    answer = host.post(
        sent, signal=signal, content_type=encoding.value, content_encoding=coding, is_chunked=True
    )
    assert answer.status in ANSWERED, answer.body
    assert answer.content_type == encoding.value


@FUZZING
@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate", "x-gzip"]))
def test_any_bytes_as_a_compressed_body_are_answered_in_the_protocol(host, body, coding):
    answer = host.post(body, content_encoding=coding)
    assert answer.status in ANSWERED


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[" + b"{}," * 500_000 + b"{}]", id="objects"),
        pytest.param(b'{"a":[' + b"[]," * 500_000 + b"[]]}", id="arrays"),
        pytest.param(b'{"a":[' + b"1," * 1_000_000 + b"1]}", id="numbers"),
    ],
)
def test_a_json_body_of_millions_of_parts_is_rejected_before_it_is_parsed(body):
    assert len(body) > envelope.LARGE
    with pytest.raises(TooLarge, match="more than 1000000 JSON parts"):
        decode_logs(body, limits=Limits())


# Each is of the full size that a body may have once inflated, 16 MiB.
FULL_SIZE = {
    "protobuf, empty resources": 'logs(b"\\x0a\\x00" * (SIZE // 2))',
    "protobuf, empty records": 'logs(field(1, field(2, b"\\x12\\x00" * (SIZE // 2))))',
    "protobuf, empty attributes of one record": (
        'logs(field(1, field(2, field(2, b"\\x32\\x00" * (SIZE // 2)))))'
    ),
    "protobuf, records of many empty attributes": (
        'logs(field(1, field(2, 15 * field(2, b"\\x32\\x00" * 500_000))))'
    ),
    "protobuf, one nested value": (
        "logs(field(1, field(2, field(2, field(6, field(2, "
        'field(5, b"\\x0a\\x00" * (SIZE // 2))))))))'
    ),
    "protobuf, one nested record body": (
        'logs(field(1, field(2, field(2, field(5, field(5, b"\\x0a\\x00" * (SIZE // 2)))))))'
    ),
    "JSON, empty objects": 'json(b"[" + b"{}," * (SIZE // 3) + b"{}]")',
    "JSON, short texts": """json(b'{"a":[' + b'"ab",' * (SIZE // 5) + b"1]}")""",
    "gzip, zeros": "inflate(bombed())",
}
PROGRAM = """
import io, resource, zlib
from guardwave.control_plane.ingest.decode import otlp_json, protobuf
from guardwave.control_plane.ingest.wire.body import WireError, read_body
from guardwave.control_plane.core.otlp_request import Limits
from tests.control_plane.ingest.decode.test_slices import field

SIZE = 16 * 1024 * 1024 - 64

def logs(body):
    return lambda: protobuf.decode_logs(body, limits=Limits())

def json(body):
    return lambda: otlp_json.decode_logs(body, limits=Limits())

def bombed():
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(256)) + packer.flush()

def inflate(body):
    return lambda: read_body(
        io.BytesIO(body), content_length=None, content_encoding="gzip", limits=Limits()
    )

work = {work}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    work()
except WireError:
    pass
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("body", [pytest.param(work, id=name) for name, work in FULL_SIZE.items()])
def test_a_body_of_full_size_takes_no_more_than_twelve_times_its_bytes(body):
    program = textwrap.dedent(PROGRAM).replace("{work}", body)
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) <= 12 * 16


def test_assignment_ids_that_are_rejected_are_not_kept_in_memory():
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for size in range(3800, 4000):
        with pytest.raises(ItemRejected, match="at most 16 ids"):
            fields.assignment_ids({contract.ASSIGNMENT_ID: tuple("~" * size for _ in range(16))})
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert after - before < 1_000_000


def test_long_assignment_ids_of_many_guards_are_read_and_not_kept():
    def read(n: int) -> None:
        ids = tuple(f"{n}.{at}.".ljust(128, "x") for at in range(16))
        assert fields.assignment_ids({contract.ASSIGNMENT_ID: "~".join(ids)}) == ids

    read(0)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for n in range(1, 500):
        read(n)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert after - before < 200_000
