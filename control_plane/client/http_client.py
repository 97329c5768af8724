"""HTTP client: one assignment request, without retries or redirects."""

from dataclasses import dataclass
from urllib.parse import quote, urlencode, urlsplit

import urllib3

MOST_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Key:
    """The subject of one answer."""

    guard: str
    owner: str
    route: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The server's reply; its ETag goes with the next question."""

    status: int
    body: bytes
    etag: str | None


class Endpoint:
    """The assignments of one environment on one control plane, read with one token."""

    def __init__(
        self,
        address: str,
        token: str,
        environment: str,
        *,
        service_version: str,
        timeout_seconds: float,
    ) -> None:
        self.host = urlsplit(address).netloc.rpartition("@")[2]
        self._base = f"{address.rstrip('/')}/api/v1/environments/{quote(environment, safe='')}"
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._service_version = service_version
        self._pool = urllib3.PoolManager(
            maxsize=8, retries=False, timeout=urllib3.Timeout(total=timeout_seconds)
        )

    def ask(self, key: Key, etag: str | None) -> Reply:
        """Ask once.

        Raises:
            urllib3.exceptions.HTTPError: no reply came, or not all of it.
            ValueError: the reply is too long for an answer.
        """
        query = urlencode({"service.version": self._service_version, "route": key.route})
        place = f"guards/{quote(key.guard, safe='')}/assignments/{quote(key.owner, safe='')}"
        headers = self._headers if etag is None else {**self._headers, "If-None-Match": etag}
        response = self._pool.request(
            "GET",
            f"{self._base}/{place}?{query}",
            headers=headers,
            redirect=False,
            preload_content=False,
        )
        try:
            body = response.read(MOST_BYTES)
            if len(body) == MOST_BYTES:
                raise ValueError(f"it has {MOST_BYTES} bytes or more")
            response.release_conn()
        finally:
            # Closes the connection unless it was released above.
            response.close()
        return Reply(response.status, body, response.headers.get("ETag"))

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()
