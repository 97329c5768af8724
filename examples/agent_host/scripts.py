"""What the stub model does in the example: one scenario for each thing there is to see."""

import json
from collections.abc import Callable, Mapping

from examples.agent_host.messages import RequestedCall
from examples.agent_host.stub_model import Say, Script, in_order


def call(call_id: str, tool: str, **arguments: object) -> RequestedCall:
    """Return a call as a model writes it."""
    return RequestedCall(call_id, tool, json.dumps(arguments))


def _failing() -> Script:
    """Ask for a page that never loads, four times at once, again and again."""
    rounds = range(6)
    return in_order(
        *(
            Say(
                "I try the page.",
                tuple(
                    call(f"call_{turn}_{at}", "fetch_page", url=f"http://down.invalid/{turn}{at}")
                    for at in range(4)
                ),
            )
            for turn in rounds
        )
    )


def _twice() -> Script:
    """Send a mail, and send it once more."""
    mail = {"to": "ann@example.org", "subject": "minutes"}
    return in_order(
        Say("I send the mail.", (call("call_1", "send_mail", **mail),)),
        Say("Did it arrive? I send it again.", (call("call_2", "send_mail", **mail),)),
        Say("The mail is on its way."),
    )


def _replayed() -> Script:
    """Send the very same call under the very same id, as some providers do."""
    same = (call("call_1", "read_note", name="plan"),)
    return in_order(Say("", same), Say("", same), Say("", same))


def _identical() -> Script:
    """Ask for one note under fresh ids until tools are taken away."""
    asked = [Say("", (call(f"call_{at}", "read_note", name="plan"),)) for at in range(4)]
    return in_order(*asked, Say("There is no plan yet; nothing was checked."))


SCENARIOS: Mapping[str, Callable[[], Script]] = {
    "failing": _failing,
    "identical": _identical,
    "replayed": _replayed,
    "twice": _twice,
}
