import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize(
    "page", ["README.md", "repeated_tool_failure.md", "side_effect_duplicate.md"]
)
def test_the_python_of_a_page_runs(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    blocks = BLOCK.findall((ROOT / "docs" / "guards" / page).read_text())
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})
