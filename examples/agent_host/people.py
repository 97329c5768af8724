"""People: a person's channel, their input during a prompt, and their permissions."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from guardwave.guards import Route


@dataclass(frozen=True, slots=True)
class Channel:
    """The source of a prompt. Its route is a hint and no proof of who writes."""

    name: str
    route: Route


TERMINAL = Channel("terminal", Route.INTERACTIVE_FOREGROUND)
CHAT_BRIDGE = Channel("chat", Route.CHANNEL)
MAIL_BRIDGE = Channel("mail", Route.CHANNEL)
CHANNELS = {channel.name: channel for channel in (TERMINAL, CHAT_BRIDGE, MAIL_BRIDGE)}


@dataclass(frozen=True, slots=True)
class InputRequest:
    """A request for the input that came while tools ran, `with_queued` if a guard is on."""

    with_queued: bool = False


@dataclass(frozen=True, slots=True)
class PersonInput:
    """Texts for the running turn, and whether another prompt waits behind it."""

    texts: tuple[str, ...] = ()
    has_queued_prompt: bool = False

    def followed_by(self, late: "PersonInput") -> "PersonInput":
        """Return both inputs as one."""
        has_queued_prompt = self.has_queued_prompt or late.has_queued_prompt
        return PersonInput(self.texts + late.texts, has_queued_prompt)


class InputError(Exception):
    """The input that came meanwhile could not be read."""


class Permission(StrEnum):
    """A person's answer to a tool that needs permission."""

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

    def drain(self, request: InputRequest) -> PersonInput:
        """Return their input since the prompt began; raises InputError."""
        ...

    def permit(self, tool: str) -> Permission:
        """Ask whether a tool may run."""
        ...

    def approve(self, question: str) -> bool:
        """Ask whether a call that was made before may be made again."""
        ...
