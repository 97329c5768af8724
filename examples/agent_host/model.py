"""Model client: a chat model behind the OpenAI-compatible API, read as a stream."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import urllib3

from examples.agent_host.messages import RequestedCall

READ_TIMEOUT_SECONDS = 60.0


class ModelError(Exception):
    """The model did not answer, or its stream broke off."""


class Interruption(Exception):  # no error: a person wanted it
    """The person cancelled while the model was answering."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One whole answer of the model. Token counts are None if the server reports none."""

    text: str
    calls: tuple[RequestedCall, ...]
    input_tokens: int | None
    output_tokens: int | None


@dataclass(slots=True)
class _PartialReply:
    """An answer while it streams in."""

    texts: list[str] = field(default_factory=list)
    calls: dict[int, list[str]] = field(default_factory=dict)
    input_tokens: int | None = None
    output_tokens: int | None = None
    is_finished: bool = False

    def add(self, chunk: Mapping[str, object]) -> None:
        usage = chunk.get("usage")
        if isinstance(usage, Mapping):
            self.input_tokens = int(usage["prompt_tokens"])
            self.output_tokens = int(usage["completion_tokens"])
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices:
            return
        delta = choices[0].get("delta", {})
        self.is_finished = self.is_finished or choices[0].get("finish_reason") is not None
        self.texts.append(delta.get("content") or "")
        for part in delta.get("tool_calls") or ():
            # Id, name and arguments may each come in pieces.
            pieces = self.calls.setdefault(int(part["index"]), ["", "", ""])
            function = part.get("function", {})
            pieces[0] += part.get("id") or ""
            pieces[1] += function.get("name") or ""
            pieces[2] += function.get("arguments") or ""

    def reply(self) -> Reply:
        calls = tuple(RequestedCall(*self.calls[index]) for index in sorted(self.calls))
        return Reply("".join(self.texts), calls, self.input_tokens, self.output_tokens)


class Model:
    """One model of one server."""

    def __init__(self, url: str, name: str = "stub", *, key: str | None = None) -> None:
        self.name = name
        self._url = f"{url.rstrip('/')}/chat/completions"
        self._headers = {"Content-Type": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self._pool = urllib3.PoolManager(
            retries=False, timeout=urllib3.Timeout(connect=5.0, read=READ_TIMEOUT_SECONDS)
        )

    def ask(self, request: Mapping[str, object], *, is_cancelled: Callable[[], bool]) -> Reply:
        """Send a request of the chat completions API and return the whole answer.

        Raises:
            ModelError: no answer, an error status, or a stream that broke off.
            Interrupted: `is_cancelled` turned true while the answer came.
        """
        streamed = {**request, "stream": True, "stream_options": {"include_usage": True}}
        partial = _PartialReply()
        try:
            response = self._pool.request(
                "POST",
                self._url,
                body=json.dumps(streamed),
                headers=self._headers,
                preload_content=False,
            )
            try:
                if response.status != 200:
                    raise ModelError(f"the model answered with status {response.status}")
                for chunk in _chunks(response):
                    if is_cancelled():
                        raise Interruption
                    partial.add(chunk)
            finally:
                response.close()
        except (urllib3.exceptions.HTTPError, ValueError, KeyError, TypeError) as error:
            raise ModelError(f"the model's answer broke off ({type(error).__name__})") from error
        if not partial.is_finished:
            raise ModelError("the model's answer broke off before its end")
        return partial.reply()


def _chunks(response: urllib3.BaseHTTPResponse) -> Iterator[Mapping[str, object]]:
    """Yield the JSON of each server-sent event."""
    held = b""
    for part in response.stream(4096):
        held += part
        *lines, held = held.split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                data = line[5:].strip()
                if data == b"[DONE]":
                    return
                chunk = json.loads(data)
                if isinstance(chunk, Mapping):
                    yield chunk
