"""The palette, read from the style sheet: text and graphics keep their contrast in both looks."""

import re
from itertools import product

import pytest

from guardwave.dashboards.blueprint import STATIC

_TOKEN = re.compile(r"--(\w+): light-dark\((#[0-9A-F]{6}), (#[0-9A-F]{6})\)")
TOKENS = {
    name: {"light": light, "dark": dark}
    for name, light, dark in _TOKEN.findall((STATIC / "tokens.css").read_text())
}
TEXTS = ("ink", "muted", "within", "unproven", "beyond", "shadow", "warn", "enforce")


def luminance(colour: str) -> float:
    """Return the relative luminance of #RRGGBB (WCAG 2.2)."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize(
    ("text", "ground", "look"), list(product(TEXTS, ("page", "card"), ("light", "dark")))
)
def test_text_has_a_contrast_of_four_and_a_half(text: str, ground: str, look: str) -> None:
    assert contrast(TOKENS[text][look], TOKENS[ground][look]) >= 4.5


@pytest.mark.parametrize(
    ("drawn", "ground", "look"),
    list(product(("rule", "off"), ("page", "card"), ("light", "dark"))),
)
def test_lines_and_glyphs_have_a_contrast_of_three(drawn: str, ground: str, look: str) -> None:
    assert contrast(TOKENS[drawn][look], TOKENS[ground][look]) >= 3


def test_every_token_that_the_pages_use_is_defined() -> None:
    used = set(re.findall(r"var\(--(\w+)", (STATIC / "site.css").read_text()))

    assert used - {"line", "tint", "mark"} <= TOKENS.keys()


def test_colours_are_named_in_one_file_only() -> None:
    assert re.findall(r"#[0-9A-Fa-f]{3,8}\b", (STATIC / "site.css").read_text()) == []
