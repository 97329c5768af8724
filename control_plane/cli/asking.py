"""What every command shares that asks a running server: where it is, who asks, what went wrong."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar
from urllib.parse import urljoin

import click
import urllib3

JsonObject: TypeAlias = "Mapping[str, JsonMember]"
JsonMember: TypeAlias = "bool | int | float | str | list[JsonMember] | JsonObject | None"
Command = TypeVar("Command", bound=Callable[..., object])

_TIMEOUT = urllib3.Timeout(connect=5.0, read=60.0)
_DEFAULT_URL = "http://127.0.0.1:8080"


class ServerRefused(click.ClickException):
    """The server answered with a problem, or none answered at that address: exit code 1."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server and the token to ask it with."""

    url: str
    token: str

    def get(self, path: str) -> JsonObject:
        """Return the JSON object at a path.

        Raises:
            ServerRefused: nobody answers there, or a problem does.
        """
        return _json_object(self.fetch(path), path)

    def post(self, path: str, body: JsonObject, *, key: str) -> JsonObject:
        """Send a JSON object under an Idempotency-Key and return the answer."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        answer = self._ask("POST", path, headers=headers, body=json.dumps(body).encode())
        return _json_object(answer, path)

    def fetch(self, path: str) -> bytes:
        """Return what is at a path, decompressed."""
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
            raise ServerRefused(
                f"no server answers at {self.url} ({error}); start one with `guardwave serve`, or "
                "set GUARDWAVE_URL"
            ) from error
        if answer.status >= 400:
            raise ServerRefused(f"{self.url} refused: {_problem(answer.data, answer.status)}")
        return answer.data


def asks_server(command: Command) -> Command:
    """Give a command `--url`. The token comes from the environment, not from a process list."""
    url = click.option(
        "--url",
        envvar="GUARDWAVE_URL",
        default=_DEFAULT_URL,
        show_default=True,
        help="Where the server is; GUARDWAVE_URL.",
    )
    return url(command)


def server_at(url: str) -> Server:
    """Return the server, with the token of GUARDWAVE_TOKEN.

    Raises:
        UsageError: there is no token, or the address is none.
    """
    token = os.environ.get("GUARDWAVE_TOKEN", "")
    if not token:
        raise click.UsageError(
            "GUARDWAVE_TOKEN is not set; make a token with `guardwave token create`"
        )
    if not url.startswith(("http://", "https://")):
        raise click.UsageError(f"--url is {url!r}; it starts with http:// or https://")
    return Server(url, token)


def tell(line: str) -> None:
    """Write progress to stderr, where no script looks for data."""
    click.echo(line, err=True)


def _json_object(content: bytes, path: str) -> JsonObject:
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ServerRefused(f"what answers at {path} is no guardwave: it sent no JSON object")
    return found


def _problem(content: bytes, status: int) -> str:
    try:
        told = json.loads(content)
        return f"{status} {told['title']}: {told['detail']}"
    except (ValueError, KeyError, TypeError):
        return f"status {status}"
