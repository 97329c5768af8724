"""HTTP client: requests of commands to a running server, with the server's errors."""

import json
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar
from urllib.parse import urljoin

import click
import urllib3

from guardwave.reducer.vocabulary import Role

JsonObject: TypeAlias = "Mapping[str, JsonMember]"
JsonMember: TypeAlias = "bool | int | float | str | list[JsonMember] | JsonObject | None"
Command = TypeVar("Command", bound=Callable[..., object])

_ANSWER_S = 60.0
_TIMEOUT = urllib3.Timeout(connect=5.0, read=_ANSWER_S)
_DEFAULT_URL = "http://127.0.0.1:8080"
_TOKEN_STATUSES = (401, 403)


class RequestFailed(click.ClickException):
    """The server answered with a problem, or did not answer: exit code 1."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server and a token for it; `new_token` is the command that makes a token."""

    url: str
    token: str
    new_token: str

    def get(self, path: str) -> JsonObject:
        """Return the JSON object at a path.

        Raises:
            RequestFailed: no server answers, or it answers with a problem.
        """
        return _json_object(self.fetch(path), path)

    def post(self, path: str, body: JsonObject, *, key: str) -> JsonObject:
        """Send a JSON object under an Idempotency-Key and return the answer."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        answer = self._ask("POST", path, headers=headers, body=json.dumps(body).encode())
        return _json_object(answer, path)

    def fetch(self, path: str) -> bytes:
        """Return the content at a path, decompressed."""
        return self._ask("GET", path, headers={"Accept-Encoding": "gzip"})

    def _ask(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None = None
    ) -> bytes:
        sent = {"Authorization": f"Bearer {self.token}", **headers}
        try:
            answer = urllib3.request(
                method,
                urljoin(self.url, path),
                headers=sent,
                body=body,
                timeout=_TIMEOUT,
                retries=urllib3.Retry(total=2, redirect=0, backoff_factor=0.2),
            )
        except urllib3.exceptions.HTTPError as error:
            raise RequestFailed(
                f"no server answers at {self.url} ({_why(error)}); start one with `guardwave "
                "serve`, or set GUARDWAVE_URL to the address of one that runs"
            ) from error
        if answer.status >= 400:
            problem = _problem_text(answer.data, answer.status)
            if answer.status in _TOKEN_STATUSES:
                problem = f"{problem}; {_token_remedy(self.new_token)}"
            raise RequestFailed(f"{self.url} refused: {problem}")
        return answer.data


def server_option(command: Command) -> Command:
    """Add `--url` to a command. A token as an option would show in the process list."""
    url = click.option(
        "--url",
        envvar="GUARDWAVE_URL",
        default=_DEFAULT_URL,
        show_default=True,
        help="Where the server is; GUARDWAVE_URL.",
    )
    return url(command)


def server_at(url: str, *, role: Role, environment: str) -> Server:
    """Return the server, with the token in GUARDWAVE_TOKEN; errors ask for a token of the role.

    Raises:
        UsageError: the token is missing or malformed, or the address is.
    """
    new_token = f"guardwave token create --role {role} --environment {shlex.quote(environment)}"
    token = os.environ.get("GUARDWAVE_TOKEN", "")
    if not token:
        raise click.UsageError(
            f"GUARDWAVE_TOKEN is not set, and a server is asked; {_token_remedy(new_token)}"
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise click.UsageError(
            "GUARDWAVE_TOKEN has spaces, line ends or characters that no token has; set it to one "
            f"token alone; {_token_remedy(new_token)}"
        )
    if not url.startswith(("http://", "https://")):
        raise click.UsageError(f"--url is {url!r}; it starts with http:// or https://")
    try:
        has_host = bool(urllib3.util.parse_url(url).host)
    except urllib3.exceptions.LocationParseError:
        has_host = False
    if not has_host:
        raise click.UsageError(f"--url is {url!r}; give an address such as {_DEFAULT_URL}")
    return Server(url, token, new_token)


def print_progress(line: str) -> None:
    """Write progress to stderr, where no script looks for data."""
    click.echo(line, err=True)


def _json_object(content: bytes, path: str) -> JsonObject:
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise RequestFailed(f"what answers at {path} is no guardwave: it sent no JSON object")
    return found


def _problem_text(content: bytes, status: int) -> str:
    try:
        problem = json.loads(content)
        return f"{status} {problem['title']}: {problem['detail']}"
    except (ValueError, KeyError, TypeError):
        return f"status {status}"


def _token_remedy(command: str) -> str:
    return (
        f"`export GUARDWAVE_TOKEN=$({command})` sets one that may, where the server was started or "
        "with its GUARDWAVE_DATA or REDIS_URL"
    )


def _why(error: urllib3.exceptions.HTTPError) -> str:
    """Return the operating system's message; the HTTP library's own shows Python objects."""
    reason: BaseException = error
    if isinstance(error, urllib3.exceptions.MaxRetryError) and error.reason is not None:
        reason = error.reason
    if isinstance(reason, urllib3.exceptions.ReadTimeoutError):
        return f"nothing came within {_ANSWER_S:g} s"
    cause = reason.__cause__ or reason.__context__
    if isinstance(cause, OSError):
        return cause.strerror or str(cause)
    return str(reason)
