"""Scenarios of the stub model: one for each behaviour of the guards."""

import json
from collections.abc import Callable, Mapping

from examples.agent_host.messages import RequestedCall
from examples.agent_host.stub_model import ModelAnswer, Script, in_order


def call(call_id: str, tool: str, **arguments: object) -> RequestedCall:
    """Return a call as a model writes it."""
    return RequestedCall(call_id, tool, json.dumps(arguments))


def _failing() -> Script:
    """Ask for a page that never loads, four times at once, in six turns."""
    rounds = range(6)
    return in_order(
        *(
            ModelAnswer(
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
        ModelAnswer("I send the mail.", (call("call_1", "send_mail", **mail),)),
        ModelAnswer("Did it arrive? I send it again.", (call("call_2", "send_mail", **mail),)),
        ModelAnswer("The mail is on its way."),
    )


def _replayed() -> Script:
    """Send the same call under the same id again, as some providers do."""
    same = (call("call_1", "read_note", name="plan"),)
    return in_order(ModelAnswer("", same), ModelAnswer("", same), ModelAnswer("", same))


def _identical() -> Script:
    """Ask for one note under fresh ids until tools are taken away."""
    calls = [ModelAnswer("", (call(f"call_{at}", "read_note", name="plan"),)) for at in range(4)]
    return in_order(*calls, ModelAnswer("There is no plan yet; nothing was checked."))


SCENARIOS: Mapping[str, Callable[[], Script]] = {
    "failing": _failing,
    "identical": _identical,
    "replayed": _replayed,
    "twice": _twice,
}
