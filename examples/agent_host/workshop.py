"""Example tools: pages that never load, notes, and mails that are written to a file."""

from pathlib import Path

from examples.agent_host.tools import Arguments, Tool, ToolError
from guardwave.guards import side_effect

_NO_EFFECT = side_effect.ToolDeclaration(side_effect=False)
_EFFECT = side_effect.ToolDeclaration(side_effect=True)


def workshop(directory: Path) -> dict[str, Tool]:
    """Return the tools by name; notes and mails are files of the directory."""

    def fetch_page(arguments: Arguments) -> str:
        url = str(arguments["url"])
        if ".invalid/" in f"{url}/":
            raise ToolError("timeout", "The page did not answer in time.")
        return f"The page at {url} is empty."

    def read_note(arguments: Arguments) -> str:
        try:
            return (directory / _file_name(arguments["name"], "note")).read_text()
        except OSError:
            raise ToolError("not_found", "There is no such note.") from None

    def save_note(arguments: Arguments) -> str:
        (directory / _file_name(arguments["name"], "note")).write_text(str(arguments["text"]))
        return "Saved."

    def send_mail(arguments: Arguments) -> str:
        with (directory / "outbox.txt").open("a") as outbox:
            outbox.write(f"To {arguments['to']}: {arguments['subject']}\n")
        return f"Sent to {arguments['to']}."

    tools = (
        Tool("fetch_page", fetch_page, ("url",), declaration=_NO_EFFECT),
        Tool("read_note", read_note, ("name",), declaration=_NO_EFFECT),
        Tool("save_note", save_note, ("name", "text"), needs_permission=True),
        Tool(
            "send_mail",
            send_mail,
            ("to", "subject"),
            declaration=_EFFECT,
            # The same mail to the same person is the same act in every conversation.
            xid=side_effect.XidDeclaration("send_mail", "to", ("subject",)),
        ),
    )
    return {tool.name: tool for tool in tools}


def _file_name(name: object, kind: str) -> str:
    text = str(name)
    if not text.isidentifier():
        raise ToolError("bad_name", "A name is made of letters, digits and underscores.")
    return f"{text}.{kind}"
