"""Drafts: the input of a form whose session had ended, kept in the browser for its next showing.

The cookie is signed, and its text comes from the same browser; no address and no log repeats it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from flask import request, session

from guardwave.control_plane.rollouts.changes import REASON_LIMIT
from guardwave.dashboards.addresses import page_path
from guardwave.dashboards.forms import FormReading

_KEY = "draft"
# Browsers drop a cookie over 4,096 bytes, and the session with it. Encoding adds up to one half.
_MOST_BYTES = 2_400
_SIGNED_OUT = (
    "You were signed out when you sent this form, so nothing happened. What you typed is back in "
    "the form: send it again."
)


@dataclass(frozen=True, slots=True)
class Draft:
    """A form that was sent without a session: its address and the text of its fields."""

    action: str
    entries: Mapping[str, str]

    @property
    def form(self) -> FormReading:
        """The form again; the error of its reason says why it was not carried out."""
        return FormReading(entries=dict(self.entries), errors={"reason": _SIGNED_OUT})


def keep_draft() -> None:
    """Keep the form of this request if it has a reason."""
    if not request.form.get("reason", "").strip():
        return
    form = FormReading()
    reason = form.text("reason")[:REASON_LIMIT].encode()[:_MOST_BYTES]
    entries = {"reason": reason.decode(errors="ignore"), "mode": form.text("mode")[:20]}
    session[_KEY] = {"action": request.path, "page": page_path(), "typed": entries}


def has_draft() -> bool:
    """Whether a draft is kept, which the page shows again after signing in."""
    return _KEY in session


def take_draft() -> Draft | None:
    """Return the draft for the page that this request shows, and forget it."""
    match session.get(_KEY):
        case {"action": str(action), "page": str(page), "typed": dict(entries)} if (
            page == page_path()
        ):
            del session[_KEY]
            return Draft(action, {str(name): str(text) for name, text in entries.items()})
        case _:
            return None


def carry_draft_over() -> None:
    """Empty the session, but keep the draft for the next sign-in."""
    draft = session.get(_KEY)
    session.clear()
    if draft is not None:
        session[_KEY] = draft
