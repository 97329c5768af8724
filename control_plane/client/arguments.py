"""What a host's code passes to the client, looked at before anything is made of it."""

import re
from urllib.parse import urlsplit

from control_plane.client.asking import Key
from control_plane.client.fallbacks import Doubt, FallbackReason

_ENVIRONMENT = re.compile(r"[a-z0-9-]{1,48}")
# What a header can carry (RFC 9110, 5.5) without a space; a token of guardwave has nothing else.
_TOKEN = re.compile(r"[!-~]+")
_PRINTED = "pass the text that `guardwave token create` printed"

# Each in a form that fits a path or a query as it is.
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
    """Refuse what is no address of a server. A token that stands in its place is not repeated.

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
    """Refuse what cannot be sent as a token, without repeating it.

    Raises:
        ValueError: it is no text, is blank, or holds what no header can carry.
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
    """Refuse what can name no environment.

    Raises:
        ValueError: it is not 1 to 48 of `a-z 0-9 -`.
    """
    remedy = "give an environment's name, 1 to 48 of a-z 0-9 -"
    if not isinstance(environment, str):
        raise ValueError(f"environment is {_kind(environment)}; {remedy}")
    if _ENVIRONMENT.fullmatch(environment) is None:
        raise ValueError(f"environment is {environment[:64]!r}; {remedy}")


def check_service_version(service_version: object) -> None:
    """Refuse what is no version that a wave could pin.

    Raises:
        ValueError: it is no text, or has a line end or the like in it.
    """
    remedy = "give the text that your telemetry has as service.version"
    if not isinstance(service_version, str):
        raise ValueError(f"service_version is {_kind(service_version)}; {remedy}")
    if not service_version.isprintable():
        raise ValueError(f"service_version is {service_version[:64]!r}; {remedy}")


def check_seconds(name: str, seconds: object, *, most: float | None = None) -> None:
    """Refuse what is no time to wait.

    Raises:
        ValueError: it is no number, not above 0, or above `most`.
    """
    remedy = (
        "give more than 0 s" if most is None else f"a prompt waits more than 0, at most {most} s"
    )
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        raise ValueError(f"{name} is {_kind(seconds)}; {remedy}")
    # Not `<= 0`: no number compares with NaN.
    if not (seconds > 0 and (most is None or seconds <= most)):
        raise ValueError(f"{name} is {seconds}; {remedy}")


def why_not_asked(key: Key) -> Doubt | None:
    """Return what keeps a question from being asked, without its value; None when nothing does."""
    for name, given in (("guard", key.guard), ("owner", key.owner), ("route", key.route)):
        form, words = _FORMS[name]
        wrong = _wrong(given, form)
        if wrong is not None:
            return Doubt(FallbackReason.NOT_ASKED, f"{name} is {wrong}; pass {words}")
    return None


def is_guard(found: object) -> bool:
    """Whether it can be a guard's name, so that a log may say it."""
    return _wrong(found, _FORMS["guard"][0]) is None


def _wrong(given: object, form: re.Pattern[str]) -> str | None:
    if not isinstance(given, str):
        return _kind(given)
    return None if form.fullmatch(given) is not None else "a text of another form"


def _kind(found: object) -> str:
    return "None" if found is None else f"of type {type(found).__name__}"
