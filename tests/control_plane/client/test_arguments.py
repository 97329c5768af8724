"""Arguments of a host's code: rejected by name when the client is made, shadow afterwards."""

import logging
import math
import sys
from enum import StrEnum

import pytest

from guardwave.control_plane.client import Assignments, FallbackReason
from tests.control_plane.client.answering_plane import GUARD, why

TOKEN = "gw_abcdefghijkm_secret"


class Unhashable(str):
    """A text that cannot be looked up."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # that is what makes it one


class Tricky:
    """Something that raises when it is looked at."""

    def __eq__(self, other):
        raise RuntimeError("workspace-7")

    def __hash__(self):
        raise RuntimeError("workspace-7")

    def __str__(self):
        raise RuntimeError("workspace-7")

    __repr__ = __str__


NO_TEXTS = [
    pytest.param(None, "None", id="none"),
    pytest.param(17, "of type int", id="a number"),
    pytest.param(b"workspace-7", "of type bytes", id="bytes"),
    pytest.param(["workspace-7"], "of type list", id="a list"),
    pytest.param({"id": "workspace-7"}, "of type dict", id="an object"),
    pytest.param(math.nan, "of type float", id="not a number"),
    pytest.param("", "a text of another form", id="an empty text"),
    pytest.param("a/../workspace-7", "a text of another form", id="a path"),
    pytest.param("workspace-7\n", "a text of another form", id="a line end"),
    pytest.param("ä workspace-7 \ud800", "a text of another form", id="no ASCII"),
    pytest.param("workspace-7/" * 100, "a text of another form", id="far too long"),
]


@pytest.mark.parametrize(("odd", "kind"), NO_TEXTS)
def test_an_owner_that_cannot_be_asked_for_is_shadow_and_reported(
    plane, assignments, caplog, odd, kind
):
    found = assignments.resolve(GUARD, odd)
    assert why(found) is FallbackReason.NOT_ASKED
    assert f"owner is {kind}; pass the owner's id, 1 to 256 of" in found.sentence
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert f"guard {GUARD}: no new assignment (not_asked): owner is {kind}; pass" in caplog.text
    assert "workspace-7" not in caplog.text + found.sentence
    with assignments.pin(GUARD, odd) as pinned:
        assert pinned == found
    assert plane.asked == []


@pytest.mark.parametrize(("odd", "kind"), NO_TEXTS)
def test_a_guard_that_cannot_be_asked_for_is_shadow_and_reported(
    plane, assignments, caplog, odd, kind
):
    found = assignments.resolve(odd, "workspace-1")
    assert why(found) is FallbackReason.NOT_ASKED
    assert f"guard is {kind}; pass the guard's name" in found.sentence
    assert "workspace-7" not in caplog.text + found.sentence
    assert isinstance(found.guard, str)
    assert plane.asked == []


@pytest.mark.parametrize(("odd", "kind"), NO_TEXTS)
def test_a_route_that_cannot_be_asked_for_is_shadow_and_reported(
    plane, assignments, caplog, odd, kind
):
    found = assignments.resolve(GUARD, "workspace-1", route=odd)
    assert why(found) is FallbackReason.NOT_ASKED
    assert f"route is {kind}; pass a route's word" in found.sentence
    assert "workspace-7" not in caplog.text + found.sentence
    assert plane.asked == []


@pytest.mark.parametrize(
    "odd",
    [pytest.param(Tricky(), id="something tricky"), pytest.param(Unhashable("a"), id="no hash")],
)
@pytest.mark.parametrize("argument", ["guard", "owner", "route"])
def test_nothing_that_is_passed_raises(plane, assignments, caplog, argument, odd):
    given = {"guard": GUARD, "owner": "workspace-1", argument: odd}
    assert why(assignments.resolve(**given)) is FallbackReason.NOT_ASKED
    with assignments.pin(**given) as pinned:
        assert why(pinned) is FallbackReason.NOT_ASKED
    assert "workspace-7" not in caplog.text
    assert plane.asked == []


def test_a_word_of_an_enumeration_is_a_text(plane, assignments):
    class Owner(StrEnum):
        FIRST = "workspace-1"

    assert not assignments.resolve(GUARD, Owner.FIRST).is_fallback
    assert len(plane.asked) == 1


@pytest.mark.parametrize(
    ("token", "wrong"),
    [
        pytest.param(None, "token is None;", id="none"),
        pytest.param(TOKEN.encode(), "token is of type bytes;", id="bytes"),
        pytest.param("", "token is blank;", id="empty"),
        pytest.param(" \n", "token is blank;", id="blank"),
        pytest.param(f"{TOKEN}\n", "token holds a space, a line end", id="a line end"),
        pytest.param(f"{TOKEN}\r\nX: 1", "token holds a space, a line end", id="another header"),
        pytest.param(f"Bearer {TOKEN}", "token holds a space,", id="the whole header"),
        pytest.param(f"{TOKEN}ü", "token holds a space,", id="no ASCII"),
    ],
)
def test_a_token_that_cannot_be_sent_is_refused_at_once_and_not_repeated(token, wrong):
    with pytest.raises(ValueError, match="`guardwave token create` printed") as refusal:
        Assignments("http://localhost", token, "internal", service_version="1.4.0")
    assert str(refusal.value).startswith(wrong)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    "endpoint",
    [
        pytest.param("", id="nothing"),
        pytest.param("localhost:8080", id="no scheme"),
        pytest.param("ftp://host", id="another scheme"),
        pytest.param("http://", id="no host"),
        pytest.param("http://[::1", id="half an address"),
        pytest.param("http://host:port", id="a port that is none"),
        pytest.param(None, id="none"),
        pytest.param(b"http://host", id="bytes"),
        pytest.param(TOKEN, id="a token in its place"),
    ],
)
def test_an_endpoint_that_is_no_url_is_refused_at_once(endpoint):
    with pytest.raises(ValueError, match=r"endpoint is .*give http:// or https://") as refusal:
        Assignments(endpoint, TOKEN, "internal", service_version="1.4.0")
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        pytest.param({"timeout_seconds": 0.0}, "timeout_seconds is 0.0;", id="no wait"),
        pytest.param({"timeout_seconds": 0.3}, "timeout_seconds is 0.3;", id="holds up prompts"),
        pytest.param({"timeout_seconds": math.nan}, "timeout_seconds is nan;", id="no number"),
        pytest.param({"timeout_seconds": "0.1"}, "timeout_seconds is of type str;", id="a text"),
        pytest.param({"refresh_seconds": -5}, "refresh_seconds is -5; give more", id="in the past"),
        pytest.param({"refresh_seconds": None}, "refresh_seconds is None;", id="no refresh"),
        pytest.param({"refresh_seconds": True}, "refresh_seconds is of type bool;", id="a truth"),
        pytest.param({"environment": None}, "environment is None; give", id="no environment"),
        pytest.param({"environment": "Internal"}, "environment is 'Internal';", id="capitals"),
        pytest.param({"service_version": None}, "service_version is None;", id="no version"),
        pytest.param({"service_version": 1.4}, "service_version is of type float;", id="a number"),
        pytest.param({"service_version": "1\n"}, r"service_version is '1\n';", id="a line end"),
        pytest.param({"telemetry": sys}, "telemetry is of type module;", id="no telemetry"),
    ],
)
def test_an_argument_that_cannot_be_used_is_refused_by_its_name(given, wrong):
    arguments = {"environment": "internal", "service_version": "1.4.0", **given}
    with pytest.raises(ValueError, match="; ") as refusal:
        Assignments("http://localhost", TOKEN, **arguments)
    assert str(refusal.value).startswith(wrong)
