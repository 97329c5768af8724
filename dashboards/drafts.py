"""What was typed into a form whose session had ended, kept in the browser until its page is shown.

The cookie is signed and its text was typed in the same browser; no address and no log repeats it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from flask import request, session

from control_plane.commands.changes import REASON_LIMIT
from dashboards.addresses import page_path
from dashboards.forms import FormReading

_KEY = "draft"
_KEPT_FIELDS = ("reason", "mode")
# Browsers drop a cookie over 4,096 bytes and the session with it; encoding adds up to a half.
_MOST_BYTES = 2_400
_SIGNED_OUT = (
    "You were signed out when you sent this form, so nothing happened. What you typed is in it "
    "again: send it once more."
)


@dataclass(frozen=True, slots=True)
class Draft:
    """A form that was sent without a session: its address, and its fields as they were typed."""

    action: str
    typed: Mapping[str, str]

    @property
    def form(self) -> FormReading:
        """The form again, with why it was not carried out as the fault of its reason."""
        return FormReading(typed=dict(self.typed), errors={"reason": _SIGNED_OUT})


def keep_draft() -> None:
    """Keep what the present request's form holds, if it holds a reason."""
    if not request.form.get("reason", "").strip():
        return
    form = FormReading()
    for name in _KEPT_FIELDS:
        form.text(name)
    reason = form.typed["reason"][:REASON_LIMIT].encode()[:_MOST_BYTES]
    typed = form.typed | {"reason": reason.decode(errors="ignore"), "mode": form.typed["mode"][:20]}
    session[_KEY] = {"action": request.path, "page": page_path(), "typed": typed}


def draft_waits() -> bool:
    """Whether something is kept, which signing in brings back."""
    return _KEY in session


def take_draft() -> Draft | None:
    """Return what was typed on the page that this request shows, once."""
    match session.get(_KEY):
        case {"action": str(action), "page": str(page), "typed": dict(typed)} if (
            page == page_path()
        ):
            del session[_KEY]
            return Draft(action, {str(name): str(text) for name, text in typed.items()})
        case _:
            return None


def carry_draft_over() -> None:
    """Empty the session but for what is kept for whoever signs in next."""
    held = session.get(_KEY)
    session.clear()
    if held is not None:
        session[_KEY] = held
