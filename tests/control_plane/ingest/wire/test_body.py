import gzip
import io
import tracemalloc
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardwave.control_plane.core.otlp_request import Encoding, Limits
from guardwave.control_plane.ingest.wire.body import (
    BadBody,
    TooLarge,
    UnsupportedEncoding,
    WireError,
    encoding_of,
    read_body,
)

LIMITS = Limits()
SMALL = Limits(wire_bytes=1000, inflated_bytes=2000)
CONTENT = b"0123456789" * 50


class Chunked(io.BytesIO):
    """A stream that ends by itself and hands out less than it is asked for."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(7, size) if size and size > 0 else 7)


class NeverRead(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        raise AssertionError("the stream must not be read past the announced length")


class Broken(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        raise ConnectionResetError("gone")


def read(body: bytes, coding: str | None = None, *, limits: Limits = LIMITS) -> bytes:
    return read_body(
        io.BytesIO(body), content_length=len(body), content_encoding=coding, limits=limits
    )


def read_chunked(body: bytes, coding: str | None = None, *, limits: Limits = LIMITS) -> bytes:
    return read_body(Chunked(body), content_length=None, content_encoding=coding, limits=limits)


@pytest.mark.parametrize("read", [read, read_chunked], ids=["sized", "chunked"])
@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        pytest.param(None, CONTENT, id="no encoding"),
        pytest.param("", CONTENT, id="empty encoding"),
        pytest.param("identity", CONTENT, id="identity"),
        pytest.param("gzip", gzip.compress(CONTENT), id="gzip"),
        pytest.param(" GZIP ", gzip.compress(CONTENT), id="gzip in capitals"),
        pytest.param("deflate", zlib.compress(CONTENT), id="deflate"),
    ],
)
def test_a_body_is_read_whole_whatever_its_encoding(read, coding, packed):
    assert read(packed, coding) == CONTENT


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=6), st.booleans())
def test_a_gzip_body_of_several_members_is_read_to_its_last(parts, chunked):
    packed = b"".join(gzip.compress(part) for part in parts)
    assert (read_chunked if chunked else read)(packed, "gzip") == b"".join(parts)


def test_a_sized_body_is_not_read_past_its_length():
    stream = io.BytesIO(b"abcdef")
    assert read_body(stream, content_length=3, content_encoding=None, limits=LIMITS) == b"abc"
    empty = read_body(NeverRead(), content_length=0, content_encoding="gzip", limits=LIMITS)
    assert empty == b""


def test_an_announced_length_over_the_limit_is_rejected_unread():
    with pytest.raises(TooLarge, match="over 1000 bytes as sent"):
        read_body(NeverRead(), content_length=1001, content_encoding=None, limits=SMALL)


def test_a_chunked_body_cannot_pass_the_wire_limit():
    stream = Chunked(b"x" * 5000)
    with pytest.raises(TooLarge, match="over 1000 bytes as sent"):
        read_body(stream, content_length=None, content_encoding=None, limits=SMALL)
    assert stream.tell() < 1010


@pytest.mark.parametrize("read", [read, read_chunked], ids=["sized", "chunked"])
@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress], ids=["gzip", "deflate"])
def test_both_limits_hold_to_the_byte(read, pack):
    coding = "gzip" if pack is gzip.compress else "deflate"
    assert len(read(pack(b"0" * 2000), coding, limits=SMALL)) == 2000
    with pytest.raises(TooLarge, match="over 2000 bytes when decompressed"):
        read(pack(b"0" * 2001), coding, limits=SMALL)
    assert len(read(b"0" * 1000, limits=SMALL)) == 1000
    with pytest.raises(TooLarge):
        read(b"0" * 1001, limits=SMALL)


def test_a_gzip_bomb_is_rejected_in_bounded_memory():
    packer = zlib.compressobj(wbits=31)
    block = bytes(1024 * 1024)
    bomb = b"".join(packer.compress(block) for _ in range(256)) + packer.flush()
    limits = Limits(inflated_bytes=2 * 1024 * 1024)
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge, match="when decompressed"):
            read(bomb, "gzip", limits=limits)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 1024 * 1024


def test_a_bomb_of_empty_gzip_members_is_rejected():
    with pytest.raises(BadBody, match="goes on after its end"):
        read(gzip.compress(b"") * 2000, "gzip")


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        pytest.param(b"no gzip at all", "gzip", id="not gzip"),
        pytest.param(gzip.compress(CONTENT)[:-3], "gzip", id="gzip cut short"),
        pytest.param(gzip.compress(CONTENT) + b"tail", "gzip", id="gzip with a tail"),
        pytest.param(zlib.compress(CONTENT) * 2, "deflate", id="deflate twice"),
        pytest.param(gzip.compress(CONTENT), "deflate", id="gzip announced as deflate"),
    ],
)
def test_a_body_that_is_not_its_encoding_is_bad(body, coding):
    with pytest.raises(BadBody):
        read(body, coding)


def test_a_body_shorter_than_announced_is_bad():
    with pytest.raises(BadBody, match="after 3 of 9 announced bytes"):
        read_body(io.BytesIO(b"abc"), content_length=9, content_encoding=None, limits=LIMITS)


def test_a_connection_that_breaks_off_is_a_bad_body():
    with pytest.raises(BadBody, match="broke off"):
        read_body(Broken(), content_length=None, content_encoding=None, limits=LIMITS)


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "x" * 500])
def test_an_unknown_content_encoding_is_rejected_unread(coding):
    with pytest.raises(UnsupportedEncoding, match="send gzip, deflate or none"):
        read_body(NeverRead(), content_length=1, content_encoding=coding, limits=LIMITS)


@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate", None]))
def test_no_bytes_give_another_error_than_a_wire_error(body, coding):
    with suppress(WireError):
        assert isinstance(read(body, coding, limits=SMALL), bytes)


@pytest.mark.parametrize(
    ("header", "encoding"),
    [
        pytest.param("application/x-protobuf", Encoding.PROTOBUF, id="protobuf"),
        pytest.param("application/protobuf", Encoding.PROTOBUF, id="protobuf by its alias"),
        pytest.param("application/json", Encoding.JSON, id="json"),
        pytest.param("Application/JSON; charset=utf-8", Encoding.JSON, id="with a parameter"),
    ],
)
def test_the_content_type_names_the_encoding(header, encoding):
    assert encoding_of(header) is encoding


@pytest.mark.parametrize("header", [None, "", "text/plain", "application/x-www-form-urlencoded"])
def test_another_content_type_is_rejected(header):
    with pytest.raises(UnsupportedEncoding, match="send application/x-protobuf") as error:
        encoding_of(header)
    assert error.value.status == 415
