"""Visible text: what a rendered page reads like, in keyboard characters."""

import re

from guardwave.dashboards import formatting as fmt


def visible_text(html: str) -> str:
    """Return the text of a page as one line, with the characters of a keyboard."""
    text = re.sub(r"<[^>]+>", "", html).replace("&nbsp;", " ").replace("&#39;", "'")
    text = text.replace(fmt.GAP, " ").replace(fmt.MINUS, "-").replace(fmt.TIMES, "x")
    return " ".join(text.split())
