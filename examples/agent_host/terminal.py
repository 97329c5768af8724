"""Terminal: a person who types prompts, types while the agent works, and presses Ctrl-C."""

import queue
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TextIO

from examples.agent_host.people import InputRequest, Permission, PersonInput


class Terminal:
    """Reads lines in its own thread, so that no line typed during a prompt is lost."""

    def __init__(self, lines: TextIO = sys.stdin, out: TextIO = sys.stdout) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._source = lines
        self._out = out
        self._cancelled = threading.Event()
        self.has_hung_up = False
        threading.Thread(target=self._read, daemon=True).start()

    def listen_for_interrupts(self) -> None:
        """Let Ctrl-C cancel the running prompt."""
        signal.signal(signal.SIGINT, lambda *_: self._cancelled.set())

    def prompts(self) -> Iterator[str]:
        """Yield each typed prompt, until `/quit` or the end of the input."""
        while True:
            self._cancelled.clear()
            line = self._ask("\nyou> ")
            if line is None or line == "/quit":
                self.has_hung_up = line is None
                return
            if line:
                yield line

    def show(self, text: str) -> None:
        """Show a text."""
        print(text, file=self._out, flush=True)  # a terminal is for printing

    def is_cancelled(self) -> bool:
        """Whether Ctrl-C was pressed since the prompt began."""
        return self._cancelled.is_set()

    def drain(self, request: InputRequest) -> PersonInput:
        """Return the lines typed meanwhile; one that begins with `/next ` stays queued."""
        texts: list[str] = []
        waiting: list[str | None] = []
        while True:
            try:
                line = self._lines.get_nowait()
            except queue.Empty:
                break
            if line is None or line.startswith("/next "):
                waiting.append(line)
            elif line:
                texts.append(line)
        for line in waiting:
            self._lines.put(line)
        has_queued = request.with_queued and any(line is not None for line in waiting)
        return PersonInput(tuple(texts), has_queued_prompt=has_queued)

    def permit(self, tool: str) -> Permission:
        """Ask whether a tool may run."""
        answer = self._ask(f"[{tool}] may this tool run? [y/N] ")
        return Permission.ALLOWED if answer == "y" else Permission.CANCELLED

    def approve(self, question: str) -> bool:
        """Ask whether something may be done once more."""
        return self._ask(f"{question} [y/N] ") == "y"

    def _ask(self, question: str) -> str | None:
        self._out.write(question)
        self._out.flush()
        line = self._lines.get()
        return None if line is None else line.removeprefix("/next ")

    def _read(self) -> None:
        for line in self._source:
            self._lines.put(line.strip())
        self._lines.put(None)
