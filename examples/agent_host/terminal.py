"""A person at a terminal: types prompts, types while the agent works, presses Ctrl-C."""

import queue
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TextIO

from examples.agent_host.people import Drained, DrainRequest, Permission


class Terminal:
    """Reads lines in a thread of its own, so that what is typed meanwhile is not lost."""

    def __init__(self, lines: TextIO = sys.stdin, out: TextIO = sys.stdout) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._source = lines
        self._out = out
        self._cancelled = threading.Event()
        self.has_hung_up = False
        threading.Thread(target=self._read, daemon=True).start()

    def listen_for_interrupts(self) -> None:
        """Take Ctrl-C as the wish to cancel the prompt that runs."""
        signal.signal(signal.SIGINT, lambda *_: self._cancelled.set())

    def prompts(self) -> Iterator[str]:
        """Yield each prompt that is typed, until `/quit` or until the input hangs up."""
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

    def drain(self, request: DrainRequest) -> Drained:
        """Return what was typed meanwhile; a line that begins with `/next ` waits its turn."""
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
        for each in waiting:
            self._lines.put(each)
        has_queued = request.with_queued and any(each is not None for each in waiting)
        return Drained(tuple(texts), has_queued_prompt=has_queued)

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
