"""Tallies: counts of passed waves by cell, and the file from which a run can continue.

The file only grows: one line of JSON per finished chunk. A line of another design is refused, so
that counts which do not belong together are never added up.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.proof.outcomes import Harm
from benchmarks.proof.owners import Sizes
from guardwave.reducer.vocabulary import Metric


class Chunk(NamedTuple):
    """A part of a roster's repetitions that is run in one go."""

    owners: int
    sizes: Sizes
    number: int


class Cell(NamedTuple):
    """The key of a count: waves of one cell are counted together."""

    owners: int
    sizes: Sizes
    metric: Metric
    has_cuped: bool
    harm: Harm


class Passes(NamedTuple):
    """Waves that passed, of `waves`: by the test, by the CR2 t bound, by both, and unstudentised.

    The unstudentised test is run where there is no CUPED and the harm is not at the margin.
    """

    waves: int = 0
    test: int = 0
    interval: int = 0
    both: int = 0
    unstudentised: int = 0

    def plus(self, other: "Passes") -> "Passes":
        """Return the sum."""
        return Passes(*(left + right for left, right in zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True)
class Design:
    """The settings that the counts of two lines must have in common."""

    seed: int
    permutations: int
    chunk_size: int


def append(path: Path, design: Design, chunk: Chunk, counts: Mapping[Cell, Passes]) -> None:
    """Add a finished chunk to the file."""
    line = {
        "design": [design.seed, design.permutations, design.chunk_size],
        "chunk": list(chunk),
        "passes": {
            f"{cell.metric}/{'cuped' if cell.has_cuped else 'plain'}/{cell.harm}": list(passes)
            for cell, passes in counts.items()
        },
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(line, separators=(",", ":")) + "\n")


def read(path: Path, design: Design) -> dict[Chunk, dict[Cell, Passes]]:
    """Return the finished chunks of a file, none if there is no file.

    Raises:
        ValueError: for a line of another design, or one that was not written whole.
    """
    if not path.exists():
        return {}
    chunks: dict[Chunk, dict[Cell, Passes]] = {}
    for place, text in enumerate(path.read_text().splitlines(), start=1):
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            raise ValueError(f"{path}, line {place} is cut off; delete that line") from None
        if line["design"] != [design.seed, design.permutations, design.chunk_size]:
            raise ValueError(
                f"{path}, line {place} is of the design {line['design']}, not {design}; "
                "name another file with --results"
            )
        owners, sizes, number = line["chunk"]
        chunk = Chunk(owners, Sizes(sizes), number)
        chunks[chunk] = {
            _cell(chunk, name): Passes(*passes) for name, passes in line["passes"].items()
        }
    return chunks


def added_up(chunks: Iterable[Mapping[Cell, Passes]]) -> dict[Cell, Passes]:
    """Return the passes of every cell over all its chunks."""
    total: dict[Cell, Passes] = {}
    for counts in chunks:
        for cell, passes in counts.items():
            total[cell] = total.get(cell, Passes()).plus(passes)
    return total


def _cell(chunk: Chunk, name: str) -> Cell:
    metric, kind, harm = name.split("/")
    return Cell(chunk.owners, chunk.sizes, Metric(metric), kind == "cuped", Harm(harm))
