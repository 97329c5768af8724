"""Documented notebook: the page prints what it shows, and its evidence gives its verdict again."""

import re
from pathlib import Path

from docs.render import rendered
from guardwave.control_plane.jobs.bundles import unpack_bundle
from guardwave.control_plane.jobs.replay import replay

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "notebook.md").read_text()


def test_the_code_of_the_page_prints_what_the_page_shows():
    """After a change of sentences run docs/example_wave.py and docs/render.py again."""
    assert rendered(PAGE, with_plots=False) == PAGE


def test_the_exported_evidence_of_the_page_gives_the_same_bytes():
    assert replay(unpack_bundle((DOCS / "example-wave.json.gz").read_bytes())).difference is None


def test_every_plot_of_the_page_is_drawn_by_its_code():
    shown = set(re.findall(r"\(images/(notebook-\w+)\.svg\)", PAGE))
    drawn = set(re.findall(r'save\(figure, "(notebook-\w+)"\)', PAGE))
    assert shown == drawn
    assert len(shown) == 3


def test_a_block_that_prints_something_else_is_noticed():
    page = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"
    assert rendered(page, with_plots=False) == page.replace("3", "2")


def test_output_appears_below_a_block_that_had_none_and_goes_with_it():
    page = "```python\nx = 2\n```\n\nText.\n\n```python\nprint(x)\n```\n"
    with_output = page + "\n```text\n2\n```\n"
    assert rendered(page, with_plots=False) == with_output
    silent = with_output.replace("print(x)", "x")
    assert rendered(silent, with_plots=False) == page.replace("print(x)", "x")


def test_plots_are_left_alone_without_matplotlib():
    page = '```python plot\nraise AssertionError("not run")\n```\n'
    assert rendered(page, with_plots=False) == page
