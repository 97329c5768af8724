"""Argument checks: what a host's code passes to `Assignments`, checked before use."""

import re
from urllib.parse import urlsplit

from guardwave.control_plane.client.fallbacks import FallbackCause, FallbackReason
from guardwave.control_plane.client.http_client import Key

_ENVIRONMENT = re.compile(r"[a-z0-9-]{1,48}")
# The characters that a header can carry (RFC 9110, 5.5), without the space.
_TOKEN = re.compile(r"[!-~]+")
_PRINTED = "pass the text that `guardwave token create` printed"

# Forms that need no escaping in a path or a query, with the words of their remedies.
_FORMS = {
    "guard": (re.compile(r"[a-z0-9_]{1,48}"), "the guard's name, 1 to 48 of a-z 0-9 _"),
    "owner": (
        re.compile(r"[A-Za-z0-9._~:@-]{1,256}"),
        "the owner's id, 1 to 256 of A-Z a-z 0-9 . _ ~ : @ -",
    ),
    "route": (
        re.compile(r"[A-Za-z0-9._-]{1,64}"),
        "a route's word, such as interactive_foreground",
    ),
}


def check_endpoint(endpoint: object) -> None:
    """Check the address of the server. The error never repeats a token given in its place.

    Raises:
        ValueError: it is no http(s) URL with a host.
    """
    remedy = "give http:// or https:// with a host"
    if not isinstance(endpoint, str):
        raise ValueError(f"endpoint is {_kind(endpoint)}; {remedy}")
    shown = "a token" if endpoint.strip().startswith("gw_") else repr(endpoint)
    try:
        parts = urlsplit(endpoint)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise ValueError(f"endpoint is {shown}; {remedy}")


def check_token(token: object) -> None:
    """Check that a token can be sent; the error never repeats it.

    Raises:
        ValueError: it is no text, is blank, or has a character that no header can carry.
    """
    if not isinstance(token, str):
        raise ValueError(f"token is {_kind(token)}; {_PRINTED}")
    if not token.strip():
        raise ValueError(f"token is blank; {_PRINTED}")
    if _TOKEN.fullmatch(token) is None:
        raise ValueError(
            "token holds a space, a line end or another character that no header can carry; "
            f"{_PRINTED}, without the line end"
        )


def check_environment(environment: object) -> None:
    """Check the form of an environment's name.

    Raises:
        ValueError: it is not 1 to 48 of `a-z 0-9 -`.
    """
    remedy = "give an environment's name, 1 to 48 of a-z 0-9 -"
    if not isinstance(environment, str):
        raise ValueError(f"environment is {_kind(environment)}; {remedy}")
    if _ENVIRONMENT.fullmatch(environment) is None:
        raise ValueError(f"environment is {environment[:64]!r}; {remedy}")


def check_service_version(service_version: object) -> None:
    """Check that a wave could pin the version.

    Raises:
        ValueError: it is no text, or has an unprintable character.
    """
    remedy = "give the text that your telemetry has as service.version"
    if not isinstance(service_version, str):
        raise ValueError(f"service_version is {_kind(service_version)}; {remedy}")
    if not service_version.isprintable():
        raise ValueError(f"service_version is {service_version[:64]!r}; {remedy}")


def check_seconds(name: str, seconds: object, *, most: float | None = None) -> None:
    """Check a time to wait.

    Raises:
        ValueError: it is no number, not above 0, or above `most`.
    """
    remedy = (
        "give more than 0 s" if most is None else f"a prompt waits more than 0, at most {most} s"
    )
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        raise ValueError(f"{name} is {_kind(seconds)}; {remedy}")
    # Not `<= 0`: each comparison with NaN is False.
    if not (seconds > 0 and (most is None or seconds <= most)):
        raise ValueError(f"{name} is {seconds}; {remedy}")


def check_question(key: Key) -> FallbackCause | None:
    """Return why the question cannot be asked, without the value; None if it can."""
    for name, value in (("guard", key.guard), ("owner", key.owner), ("route", key.route)):
        form, remedy = _FORMS[name]
        fault = _fault(value, form)
        if fault is not None:
            return FallbackCause(FallbackReason.NOT_ASKED, f"{name} is {fault}; pass {remedy}")
    return None


def is_guard(value: object) -> bool:
    """Whether it can be a guard's name, which a log may show."""
    return _fault(value, _FORMS["guard"][0]) is None


def _fault(value: object, form: re.Pattern[str]) -> str | None:
    if not isinstance(value, str):
        return _kind(value)
    return None if form.fullmatch(value) is not None else "a text of another form"


def _kind(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
