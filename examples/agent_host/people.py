"""The person at the other end: what they say meanwhile, and what they allow."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from reducer.vocabulary import Route


@dataclass(frozen=True, slots=True)
class Channel:
    """Where a prompt comes from. The route is a hint about it, no proof of who speaks."""

    name: str
    route: Route


TERMINAL = Channel("terminal", Route.INTERACTIVE_FOREGROUND)
CHAT_BRIDGE = Channel("chat", Route.CHANNEL)
MAIL_BRIDGE = Channel("mail", Route.CHANNEL)
CHANNELS = {each.name: each for each in (TERMINAL, CHAT_BRIDGE, MAIL_BRIDGE)}


@dataclass(frozen=True, slots=True)
class DrainRequest:
    """Asks for the input that came while tools ran; a guard that is on also asks what waits."""

    with_queued: bool = False


@dataclass(frozen=True, slots=True)
class Drained:
    """Texts for the running turn, and whether a prompt of its own waits behind it."""

    texts: tuple[str, ...] = ()
    has_queued_prompt: bool = False

    def and_then(self, late: "Drained") -> "Drained":
        """Return what came by now, of what had come before and what came late."""
        has_queued_prompt = self.has_queued_prompt or late.has_queued_prompt
        return Drained(self.texts + late.texts, has_queued_prompt)


class DrainError(Exception):
    """What came meanwhile could not be asked for."""


class Permission(StrEnum):
    """What a person answers to a tool that asks first."""

    ALLOWED = "allowed"
    CANCELLED = "cancelled"


class Person(Protocol):
    """One person, however connected."""

    def show(self, text: str) -> None:
        """Show a text."""
        ...

    def is_cancelled(self) -> bool:
        """Whether they cancelled the prompt that runs."""
        ...

    def drain(self, request: DrainRequest) -> Drained:
        """Return what they said since the prompt began; raises DrainError."""
        ...

    def permit(self, tool: str) -> Permission:
        """Ask whether a tool may run."""
        ...

    def approve(self, question: str) -> bool:
        """Ask whether a call that was done before may be done again."""
        ...
