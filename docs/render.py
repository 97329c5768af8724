"""Rendered documents: runs the Python of a document and puts its output below each block.

    python docs/render.py FILE.md

Blocks marked `python` run in order, in one namespace. A block marked `python plot` needs
matplotlib and is run only here; the tests run all others and compare what they print.
"""

import argparse
import contextlib
import io
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

# A block of Python, with its output right below.
BLOCK = re.compile(
    r"```python(?P<plot> plot)?\n(?P<code>.*?)```\n(?:\n```text\n(?P<output>.*?)```\n)?", re.DOTALL
)


def rendered(text: str, *, with_plots: bool) -> str:
    """Return the document with the present output of its blocks; plots may keep theirs."""
    namespace: dict[str, object] = {"__name__": "__page__"}

    def run(block: re.Match[str]) -> str:
        if block["plot"] and not with_plots:
            return block[0]
        printed = io.StringIO()
        with contextlib.chdir(ROOT), contextlib.redirect_stdout(printed):
            # The document is part of this repository, and its readers run it too.
            exec(block["code"], namespace)  # noqa: S102  # the purpose of this script
        code = f"```python{block['plot'] or ''}\n{block['code']}```\n"
        return f"{code}\n```text\n{printed.getvalue()}```\n" if printed.getvalue() else code

    return BLOCK.sub(run, text)


def main() -> None:
    """Render the documents on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents", nargs="+", type=Path)
    for document in parser.parse_args().documents:
        document.write_text(rendered(document.read_text(), with_plots=True))


if __name__ == "__main__":
    main()
