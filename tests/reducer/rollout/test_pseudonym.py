"""Pseudonyms: they replace owner ids, and nothing leads back."""

import json
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from guardwave.reducer.rollout.pseudonym import check_owner, pack, pseudonym_of, unpack
from tests.strategies import owner_ids, pseudonyms

FIXTURE = Path(__file__).parents[2] / "fixtures" / "draw_vectors.json"
VECTORS = json.loads(FIXTURE.read_text(encoding="utf-8"))["pseudonyms"]
keys = st.binary(min_size=1, max_size=64)


@pytest.mark.parametrize(
    "vector",
    [pytest.param(row, id=f"{row['owner'][:12]} under key {row['key'][:2]}") for row in VECTORS],
)
def test_a_pseudonym_agrees_with_the_vectors(vector):
    assert pseudonym_of(bytes.fromhex(vector["key"]), vector["owner"]) == vector["pseudonym"]


@given(keys, owner_ids)
def test_a_pseudonym_is_sixteen_base32_characters_and_the_same_each_time(key, owner):
    pseudonym = pseudonym_of(key, owner)
    assert len(pseudonym) == 16
    assert set(pseudonym) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    assert pseudonym_of(key, owner) == pseudonym


@given(keys, keys, owner_ids)
def test_another_key_gives_another_pseudonym(one, other, owner):
    assume(one != other)
    assert pseudonym_of(one, owner) != pseudonym_of(other, owner)


@given(owner_ids, owner_ids)
def test_two_owners_have_two_pseudonyms(one, other):
    assert (pseudonym_of(b"k", one) == pseudonym_of(b"k", other)) is (one == other)


@pytest.mark.parametrize("key", [b"", bytes(65)], ids=["no key", "a key that is too long"])
def test_there_is_no_pseudonym_without_a_proper_key(key):
    with pytest.raises(ValueError, match=f"1 to 64 bytes, this one has {len(key)}"):
        pseudonym_of(key, "acme")


@pytest.mark.parametrize(
    ("owner", "words"),
    [
        pytest.param("", "has 0", id="empty"),
        pytest.param("secret" * 43, "has 258", id="one too long"),
        pytest.param("é" * 129, "has 258", id="few characters, many bytes"),
        pytest.param("secret\n", "printable", id="a line feed"),
        pytest.param("secret\x00", "printable", id="a zero byte"),
        pytest.param("secret\x7f", "printable", id="delete"),
        pytest.param("secret\u202e", "printable", id="a change of direction"),
        pytest.param("secret\ud800", "printable", id="half a surrogate pair"),
    ],
)
def test_a_bad_owner_id_is_refused_without_repeating_it(owner, words):
    for refuse in (check_owner, lambda owner: pseudonym_of(b"key", owner)):
        with pytest.raises(ValueError, match=words) as caught:
            refuse(owner)
        assert "secret" not in str(caught.value)
        assert "é" not in str(caught.value)


@pytest.mark.parametrize(
    "owner",
    [
        pytest.param("a", id="one byte"),
        pytest.param("a" * 256, id="256 bytes"),
        pytest.param("é" * 128, id="256 bytes in 128 characters"),
        pytest.param("workspace 7/../x", id="spaces and slashes"),
    ],
)
def test_a_good_owner_id_is_returned_unchanged(owner):
    assert check_owner(owner) == owner


@given(pseudonyms)
def test_a_packed_pseudonym_comes_back_as_it_was(pseudonym):
    assert len(pack(pseudonym)) == 10
    assert unpack(pack(pseudonym)) == pseudonym


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("A" * 15, id="one too short"),
        pytest.param("A" * 17, id="one too long"),
        pytest.param("a" * 16, id="lower case"),
        pytest.param("A" * 15 + "1", id="a digit that base32 leaves out"),
        pytest.param("A" * 10 + "=" * 6, id="padding, which would unpack to fewer bytes"),
        pytest.param("A" * 15 + "é", id="not ascii"),
    ],
)
def test_only_a_pseudonym_is_packed(text):
    with pytest.raises(ValueError, match="16 characters of A-Z and 2-7"):
        pack(text)


@pytest.mark.parametrize("size", [0, 9, 11])
def test_only_ten_bytes_are_unpacked(size):
    with pytest.raises(ValueError, match=f"10 bytes, not {size}"):
        unpack(bytes(size))
