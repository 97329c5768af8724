"""Assignment ids: an id counts only if this environment issued it."""

import base64
import json
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from guardwave.reducer.rollout.assignment import Assignment, ForgedId, issue, verify
from guardwave.reducer.rollout.fields import length_prefixed
from guardwave.reducer.vocabulary import Cohort, Mode
from tests.strategies import assignments, environments

FIXTURE = Path(__file__).parents[2] / "fixtures" / "draw_vectors.json"
VECTORS = json.loads(FIXTURE.read_text(encoding="utf-8"))
KEY = bytes.fromhex(VECTORS["tag_key"])
HERE = Assignment(
    guard="repeated_tool_failure",
    pseudonym="LRPKTM4IV7SSLVYI",
    wave=3,
    cohort=Cohort.ENFORCED,
    mode=Mode.ENFORCE,
    generation=12,
)


def tag_id(environment: str, *fields: str) -> str:
    """Return an id with a true tag over any fields, made without the code under test."""
    digest = blake2b(length_prefixed("a1", environment, *fields), digest_size=10, key=KEY)
    return ".".join(("a1", *fields, base64.b32encode(digest.digest()).decode()))


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(row, id=f"{row['cohort']} {row['mode']} in {row['environment']}, no. {n}")
        for n, row in enumerate(VECTORS["assignments"])
    ],
)
def test_an_id_agrees_with_the_vectors(vector):
    assignment = Assignment(
        guard=vector["guard"],
        pseudonym=vector["pseudonym"],
        wave=vector["wave"],
        cohort=Cohort(vector["cohort"]),
        mode=Mode(vector["mode"]),
        generation=vector["generation"],
    )
    assert issue(KEY, vector["environment"], assignment) == vector["id"]
    assert verify(KEY, vector["environment"], vector["id"]) == assignment


@given(environments, assignments)
def test_an_issued_id_is_read_as_it_was_issued(environment, assignment):
    assert verify(KEY, environment, issue(KEY, environment, assignment)) == assignment


@given(st.data(), assignments)
def test_an_id_with_any_character_changed_is_rejected(data, assignment):
    text = issue(KEY, "internal", assignment)
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(codec="utf-8") | st.sampled_from("abcXYZ0123456789._"))
    assume(other != text[at])
    assert isinstance(verify(KEY, "internal", text[:at] + other + text[at + 1 :]), ForgedId)


@given(st.data(), assignments)
def test_an_id_that_was_cut_or_added_to_is_rejected(data, assignment):
    text = issue(KEY, "internal", assignment)
    cut = data.draw(st.integers(0, len(text) - 1))
    assert isinstance(verify(KEY, "internal", text[:cut]), ForgedId)
    assert isinstance(verify(KEY, "internal", text[cut + 1 :]), ForgedId)
    more = data.draw(st.text(min_size=1, max_size=3))
    assert isinstance(verify(KEY, "internal", text + more), ForgedId)


@pytest.mark.parametrize(
    ("environment", "key"),
    [
        pytest.param("public-cloud", KEY, id="another environment"),
        pytest.param("internal", KEY[::-1], id="another key"),
    ],
)
def test_an_id_of_another_environment_or_key_is_rejected(environment, key):
    text = issue(KEY, "internal", HERE)
    assert verify(key, environment, text) == ForgedId("its tag is not of this environment")


@pytest.mark.parametrize(
    "raised",
    [
        pytest.param(replace(HERE, mode=Mode.OFF), id="mode"),
        pytest.param(replace(HERE, cohort=Cohort.CONTROL), id="cohort"),
        pytest.param(replace(HERE, wave=4), id="wave"),
        pytest.param(replace(HERE, generation=13), id="generation"),
        pytest.param(replace(HERE, guard="identical_call"), id="guard"),
        pytest.param(replace(HERE, pseudonym="A" * 16), id="pseudonym"),
    ],
)
def test_a_tag_is_good_for_its_own_fields_only(raised):
    body = issue(KEY, "internal", raised).rpartition(".")[0]
    tag = issue(KEY, "internal", HERE).rpartition(".")[2]
    assert isinstance(verify(KEY, "internal", f"{body}.{tag}"), ForgedId)


@given(st.text() | st.text("a1.bcdefghij_234567ABCDEFGH", max_size=140))
def test_arbitrary_text_never_raises_and_is_rejected(text):
    assert isinstance(verify(KEY, "internal", text), ForgedId)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("\ud800", id="half a surrogate pair"),
        pytest.param("a1." * 100_000, id="very long"),
        pytest.param(issue(KEY, "internal", HERE) + "\n", id="a line feed at the end"),
        pytest.param(issue(KEY, "internal", HERE).replace("a1.", "a2.", 1), id="another scheme"),
        pytest.param(issue(KEY, "internal", HERE).replace(".3.", ".٣.", 1), id="a foreign digit"),
        pytest.param(
            tag_id("internal", HERE.guard, HERE.pseudonym, "03", "enforced", "enforce", "12"),
            id="a number with a leading zero",
        ),
    ],
)
def test_a_text_without_the_shape_of_an_id_is_reported_as_such(text):
    assert verify(KEY, "internal", text) == ForgedId(
        "it does not have the shape of an assignment id"
    )


@pytest.mark.parametrize(
    ("cohort", "mode"),
    [
        pytest.param("placebo", "warn", id="a cohort of tomorrow"),
        pytest.param("warned", "ask", id="a mode of tomorrow"),
    ],
)
def test_a_true_id_with_words_of_a_newer_server_is_rejected_without_an_error(cohort, mode):
    text = tag_id("internal", HERE.guard, HERE.pseudonym, "3", cohort, mode, "12")
    assert verify(KEY, "internal", text) == ForgedId(
        "it names a cohort or a mode that this server does not know"
    )


def test_the_longest_id_fits_into_an_attribute_of_128_bytes():
    longest = Assignment(
        guard="g" * 48,
        pseudonym="A" * 16,
        wave=999_999_999,
        cohort=max(Cohort, key=len),
        mode=max(Mode, key=len),
        generation=999_999_999,
    )
    text = issue(KEY, "internal", longest)
    assert verify(KEY, "internal", text) == longest
    assert len(text.encode()) == 124


@pytest.mark.parametrize("key", [b"", bytes(65)], ids=["no key", "a key that is too long"])
def test_an_id_is_never_issued_without_a_proper_key(key):
    with pytest.raises(ValueError, match=f"1 to 64 bytes, this one has {len(key)}"):
        issue(key, "internal", HERE)
