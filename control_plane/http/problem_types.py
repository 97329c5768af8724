"""What each problem type means: the sections of `problems.md`, which lies beside this module."""

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

from flask import Blueprint, Response

from control_plane import errors

blueprint = Blueprint("problem_types", __name__)

_SECTION = re.compile(r"^## (?P<code>[a-z-]+)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


@cache
def sections() -> Mapping[str, str]:
    """Return the text of each problem type by its code, as Markdown."""
    document = resources.files("control_plane.http").joinpath("problems.md").read_text("utf-8")
    return {found["code"]: found["text"].strip() for found in _SECTION.finditer(document)}


@blueprint.get("/problems/<code>")
def explain(code: str) -> Response:
    """Say in plain text what a problem type means and what to do about it."""
    text = sections().get(code)
    if text is None:
        raise errors.NotFound(
            f"there is no problem type {code[:64]!r}; there are {', '.join(sections())}"
        )
    return Response(f"{code}\n\n{text}\n", mimetype="text/plain")
