"""Static files: vendored files as published, and templates without scripts."""

import base64
import hashlib
import re
import tomllib
from pathlib import Path

import pytest
from flask import Flask

from guardwave.dashboards.blueprint import STATIC, asset

VENDOR = STATIC / "vendor"
VENDORED = tomllib.loads((VENDOR / "vendor.toml").read_text())["file"]
TEMPLATES = sorted((STATIC.parent / "templates").rglob("*.html"))
BANNED = {
    "an inline style": re.compile(r"\sstyle=|<style"),
    "an inline script": re.compile(r"<script(?![^>]*\ssrc=)"),
    "an event attribute": re.compile(r"\son[a-z]+=|\shx-on"),
    "an evaluated htmx value": re.compile(r"js:|javascript:|hx-trigger=\"[^\"]*\["),
    "another host": re.compile(r"(?:src|href|action|hx-\w+)=\"(?:https?:)?//"),
}


@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry["name"]) for entry in VENDORED])
def test_a_vendored_file_is_the_published_one_with_its_licence(entry: dict[str, str]) -> None:
    body = (VENDOR / entry["path"]).read_bytes()

    assert hashlib.sha256(body).hexdigest() == entry["sha256"]
    assert (VENDOR / entry["license_path"]).read_text().strip()
    assert len(base64.b64decode(entry["integrity"].removeprefix("sha512-"))) == 64


def test_every_vendored_file_is_listed() -> None:
    listed = {entry[key] for entry in VENDORED for key in ("path", "license_path")}

    assert {path.name for path in VENDOR.iterdir()} == listed | {"vendor.toml"}


@pytest.mark.parametrize("template", [pytest.param(path, id=path.name) for path in TEMPLATES])
def test_a_template_holds_nothing_that_the_content_policy_blocks(template: Path) -> None:
    text = template.read_text()

    assert [what for what, pattern in BANNED.items() if pattern.search(text)] == []


def test_a_static_file_is_kept_for_good_under_its_digest(app: Flask) -> None:
    with app.test_request_context():
        address = asset("site.css")
    with app.test_client().get(address) as answer:
        assert answer.status_code == 200
        assert "immutable" in answer.headers["Cache-Control"]
        assert "max-age=31536000" in answer.headers["Cache-Control"]


def test_a_static_file_under_another_digest_is_not_found(app: Flask) -> None:
    answer = app.test_client().get("/assets/0123456789abcdef/site.css")

    assert answer.status_code == 404


@pytest.mark.parametrize("name", ["../pages.py", "..%2fpages.py", "nope.css"])
def test_only_static_files_are_served(app: Flask, name: str) -> None:
    assert app.test_client().get(f"/assets/0123456789abcdef/{name}").status_code == 404
