"""Draw document: the worked vectors of docs/draw.md are true."""

import json
import re
from hashlib import blake2b, sha256
from pathlib import Path

import pytest

from guardwave.reducer.rollout.draw import position
from guardwave.reducer.rollout.fields import base32_of_80_bits

ROOT = Path(__file__).parents[3]
DOCUMENT = (ROOT / "docs" / "draw.md").read_text(encoding="utf-8")
VECTORS = json.loads((ROOT / "tests/fixtures/draw_vectors.json").read_text(encoding="utf-8"))
ACME = VECTORS["pseudonyms"][0]["pseudonym"]
DUMP = re.compile(r"```\n((?:[0-9a-f]{8} [0-9a-f]+\n)+)```")
DUMPS = [bytes.fromhex(block) for block in DUMP.findall(DOCUMENT)]


def test_the_bytes_shown_for_the_draw_give_the_position_shown():
    u = position("internal", "repeated_tool_failure", VECTORS["rosters"][0]["salt"], ACME)
    assert sha256(DUMPS[0]).digest()[:8] == u.to_bytes(8, "big")
    assert f"`{u:016x}`, and that is `u` ({u})" in DOCUMENT


def test_the_bytes_shown_for_the_tag_give_the_id_shown():
    digest = blake2b(DUMPS[1], digest_size=10, key=bytes.fromhex(VECTORS["tag_key"])).digest()
    assert f"`{digest.hex()}`, the tag is `{base32_of_80_bits(digest)}`" in DOCUMENT
    assert VECTORS["assignments"][0]["id"].endswith(base32_of_80_bits(digest))


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(VECTORS["assignments"][0]["id"], id="the assignment id"),
        pytest.param(ACME, id="the pseudonym"),
        pytest.param(VECTORS["algorithm"], id="the algorithm"),
        pytest.param(f"{len(DUMPS[0])} bytes that are hashed", id="how many bytes are hashed"),
    ],
)
def test_what_the_document_shows_is_in_the_vectors(shown):
    assert shown in DOCUMENT
