"""Coverage study: how often the decision test passes a harmful guard, for docs/coverage.md.

The whole grid takes about an hour on one core and may be interrupted: finished chunks are stored in
benchmarks/results/coverage.jsonl, and the next run continues with the missing ones. When all are
there it only writes the document again; `--so-far` writes it with those that are there. `--quick`
runs a small part and prints it.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from benchmarks.proof import tables, tallies, waves
from benchmarks.proof.owners import Sizes
from benchmarks.proof.tallies import Chunk, Design

RESULTS = ROOT / "benchmarks" / "results" / "coverage.jsonl"
DOCUMENT = ROOT / "docs" / "coverage.md"
REVIEW = ROOT / "docs" / "statistics.md"
# The place of the summary in the document for reviewers.
SUMMARY = ("<!-- from benchmarks/coverage.py -->", "<!-- until here -->")
COMMAND = "python benchmarks/coverage.py"
FULL = Design(seed=20_261_129, permutations=1_999, chunk_size=250)
QUICK = Design(seed=20_261_129, permutations=399, chunk_size=50)
# Repetitions of each roster, in chunks: 4,000 of the small rosters and 1,000 of the largest.
CHUNKS = {40: 16, 200: 16, 1_000: 16, 10_000: 4}
QUICK_CHUNKS = {40: 2, 200: 2, 1_000: 1}


def main() -> None:
    """Run what is missing, write the document and fail when the proof does not hold."""
    options = _options()
    with tempfile.TemporaryDirectory() as scratch:
        results = Path(scratch) / "quick.jsonl" if options.quick else options.results
        design, wanted = (QUICK, QUICK_CHUNKS) if options.quick else (FULL, CHUNKS)
        if not options.so_far:
            run(results, design, list(chunks(wanted)), workers=options.workers)
        finished = tallies.read(results, design)
    counts = tallies.added_up(finished.values())
    command = COMMAND + (" --quick" if options.quick else "")
    missing = len(set(chunks(wanted)) - set(finished))
    text = tables.report(counts, design, command, missing=missing)
    if options.quick:
        print(text)
    else:
        DOCUMENT.write_text(text + "\n")
        summary = f"{SUMMARY[0]}\n\n{tables.in_short(counts)}\n\n{SUMMARY[1]}"
        between = re.compile(f"{SUMMARY[0]}.*{SUMMARY[1]}", re.DOTALL)
        REVIEW.write_text(between.sub(summary, REVIEW.read_text()))
        print(f"wrote {DOCUMENT.relative_to(ROOT)} and the summary in {REVIEW.relative_to(ROOT)}")
    broken = [cell for cell, passes in counts.items() if tables.is_broken(cell, passes)]
    if broken or tables.pooled(counts) > tables.POOLED_LIMIT:
        raise SystemExit(f"the proof does not hold: {broken or 'the pooled mean is too high'}")


def chunks(wanted: dict[int, int]) -> Iterator[Chunk]:
    """Yield the chunks of a grid: one of every roster before the second of any."""
    for number in range(max(wanted.values())):
        for owners, count in wanted.items():
            if number < count:
                yield from (Chunk(owners, sizes, number) for sizes in Sizes)


def run(results: Path, design: Design, wanted: list[Chunk], *, workers: int) -> None:
    """Run the chunks that the file lacks, and append each when it is finished."""
    finished = tallies.read(results, design)
    missing = [chunk for chunk in wanted if chunk not in finished]
    columns = ("[progress.description]{task.description}", BarColumn(), MofNCompleteColumn())
    with (
        Progress(*columns, TimeRemainingColumn(elapsed_when_finished=True)) as progress,
        ProcessPoolExecutor(workers) as pool,
    ):
        task = progress.add_task("chunks", total=len(wanted), completed=len(wanted) - len(missing))
        futures: dict[Future[waves.Counts], Chunk] = {
            pool.submit(partial(waves.repeat, chunk, design)): chunk for chunk in missing
        }
        for future in as_completed(futures):
            tallies.append(results, design, futures[future], future.result())
            progress.advance(task)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="run a small part and print it")
    parser.add_argument("--so-far", action="store_true", help="write what is there, run nothing")
    parser.add_argument("--workers", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the counts")
    return parser.parse_args()


if __name__ == "__main__":
    main()
