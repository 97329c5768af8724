"""Cost of the guards to a host: time beside `json.dumps` of the same batch, memory, and imports.

Times are CPU time of this process, the best of many short rounds: a busy machine makes them longer,
never shorter. Compare ratios of one run; the limits are those of this project. The base install is
enough.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import timeit
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from guardwave.reducer import pipeline
from guardwave.reducer.guards import duplicate_call_id, repeated_failure
from guardwave.reducer.guards.calls import ToolCall
from guardwave.reducer.guards.repeated_failure import Observation, RepeatedFailure, SettledBatch
from guardwave.reducer.guards.repeated_failure.outcome import MOST_NAME
from guardwave.reducer.guards.side_effect import UNDECLARED, ToolDeclaration
from guardwave.reducer.pipeline import (
    GUARDS,
    BatchProposed,
    BatchSettled,
    Limits,
    Pipeline,
    PromptStarted,
    Proposal,
    TurnStarting,
)
from guardwave.reducer.vocabulary import Mode

ROUNDS = 60
PER_ROUND = 300
IMPORTS = 15
HISTORY = 50
IDS = 10_000
HARMLESS = ToolDeclaration(side_effect=False)
REQUEST = "prompt-1"
STANDARD = "base64, dataclasses, datetime, enum, hashlib, json, re, typing"


class RequestedCall(NamedTuple):
    """A tool that the model asks for, its arguments, and its host's declaration."""

    tool: str
    arguments: dict[str, object]
    declaration: ToolDeclaration


@dataclass(frozen=True)
class Row:
    """One line of the table; `limit` None where there is none."""

    name: str
    measured: float
    unit: str
    limit: float | None = None

    def text(self, beside: float | None = None) -> str:
        """Return the line, with the ratio to `json.dumps` where the measure is a time."""
        ratio = "" if beside is None else f"{self.measured / beside:6.1f} x"
        verdict = ""
        if self.limit is not None:
            word = "holds" if self.measured <= self.limit else "MISSED"
            verdict = f"<= {self.limit:g}: {word}"
        return f"{self.name:58}{self.measured:8.1f} {self.unit:6}{ratio:>9}  {verdict}".rstrip()


def requested_calls(number: int) -> tuple[RequestedCall, ...]:
    """Return four calls as a coding agent makes them; every batch is different."""
    path = f"src/package/module_{number}.py"
    old, new = "    return state\n" * 6, "    return replace(state, count=state.count + 1)\n" * 6
    search = {"pattern": f"def reduce_{number}\\(", "path": "src", "max_results": 50, "case": True}
    command = f"python -m pytest -q tests/test_module_{number}.py"
    return (
        RequestedCall("read_file", {"path": path, "offset": 0, "limit": 2000}, HARMLESS),
        RequestedCall("search_text", search, HARMLESS),
        RequestedCall("edit_file", {"path": path, "old": old, "new": new}, UNDECLARED),
        RequestedCall(
            "run_command", {"command": command, "timeout_ms": 120_000, "cwd": "."}, UNDECLARED
        ),
    )


def calls_of(batch: tuple[RequestedCall, ...], number: int) -> list[ToolCall]:
    """Return the calls with their digests, under ids that were never used."""
    return [
        ToolCall.of(f"call_{number:08d}_{place}", request.tool, request.arguments)
        for place, request in enumerate(batch)
    ]


def proposed(number: int, *, declares: bool) -> BatchProposed:
    """Return the batch before it runs."""
    batch = requested_calls(number)
    proposals = tuple(
        Proposal(call, request.declaration if declares else UNDECLARED)
        for request, call in zip(batch, calls_of(batch, number), strict=True)
    )
    return BatchProposed((proposals,), REQUEST, number * 1000)


def observed(keys: list[str], word: str) -> SettledBatch:
    """Return the batch after it ran: all calls succeeded, or all failed with one type."""
    error_type = "timeout" if word == "error" else None
    observations = tuple(
        Observation(
            key,
            "run_command",
            tool_type="native",
            terminal_status=word,
            execution_status=word,
            error_type=error_type,
        )
        for key in keys
    )
    return SettledBatch(observations, is_complete=True, is_input_reliable=True)


def best_us(work: Callable[[], object]) -> float:
    """Return the CPU time of one call in microseconds, of the best round."""
    rounds = timeit.repeat(work, number=PER_ROUND, repeat=ROUNDS, timer=time.process_time)
    return min(rounds) / PER_ROUND * 1e6


def repeated_failure_rows() -> list[Row]:
    """Measure the repeated-failure reducer alone, on its slowest and on its usual batch."""
    keys = [f"call_{at}" for at in range(4)]
    failed, done = observed(keys, "error"), observed(keys, "success")
    start = RepeatedFailure.start(Mode.ENFORCE)
    tracking = repeated_failure.reduce(start, failed).state
    return [
        Row(
            name,
            best_us(lambda state=state, batch=batch: repeated_failure.reduce(state, batch)),
            "us",
            20,
        )
        for name, state, batch in (
            ("repeated failure: four failures, the reminder", tracking, failed),
            ("repeated failure: four successes", start, done),
        )
    ]


def pipeline_rows(
    name: str, mode: Mode, *, declares: bool, limit: float | None = None
) -> list[Row]:
    """Measure all guards on one batch after many others of its prompt: settled, and proposed.

    The limit is that of the settled batch, as it is for the reducer of settled batches.
    """
    modes = dict.fromkeys(GUARDS, mode)
    state = Pipeline.start(modes, limits=Limits(total_calls=10 * HISTORY))
    state = pipeline.reduce(state, PromptStarted(modes)).state
    for number in range(HISTORY):
        state = pipeline.reduce(state, TurnStarting()).state
        step = pipeline.reduce(state, proposed(number, declares=declares))
        settled = BatchSettled(
            observed([disposition.key for disposition in step.dispositions], "success"), number
        )
        state = pipeline.reduce(step.state, settled).state
    before = pipeline.reduce(state, TurnStarting()).state
    event = proposed(HISTORY, declares=declares)
    step = pipeline.reduce(before, event)
    running = step.state
    settled = BatchSettled(
        observed([call.key for call in step.dispositions], "success"), HISTORY * 1000
    )
    propose = best_us(lambda: pipeline.reduce(before, event))
    settle = best_us(lambda: pipeline.reduce(running, settled))
    return [
        Row(f"pipeline, settled: {name}", settle, "us", limit),
        Row(f"pipeline, proposed: {name}", propose, "us"),
    ]


def kept_bytes(make: Callable[[], object]) -> int:
    """Return the bytes that stay allocated after something was made."""
    gc.collect()
    tracemalloc.start()
    try:
        kept = make()
        # Freed tuples that the interpreter caches are no part of the state.
        gc.collect()
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del kept
    return used


def one_streak() -> RepeatedFailure:
    """Return the largest state of a prompt: latched, under a key of the longest possible names."""
    state = RepeatedFailure.start(Mode.ENFORCE)
    tool, error_type = "t" * MOST_NAME, "e" * MOST_NAME
    for _ in range(3):
        four = (
            Observation(
                "a", tool, terminal_status="error", execution_status="error", error_type=error_type
            ),
        ) * 4
        batch = SettledBatch(four, is_complete=True, is_input_reliable=True)
        state = repeated_failure.reduce(state, batch).state
    return state


def many_ids() -> duplicate_call_id.DuplicateCallId:
    """Return the state of a session with many ids, four in a batch."""
    state = duplicate_call_id.DuplicateCallId.start(Mode.ENFORCE)
    fingerprint = ToolCall.of(None, "read_file", {}).fingerprint
    for number in range(IDS // 4):
        # Each id is a new text, which only the state references.
        four = [ToolCall(f"call_{number:022d}_{at}", "read_file", fingerprint) for at in range(4)]
        event = duplicate_call_id.BatchProposed.of(*four)
        state = duplicate_call_id.reduce(state, event).state
    return state


def import_ms(module: str) -> float:
    """Return the least CPU time of an import in a new interpreter with cached bytecode."""
    script = (
        "import time; start = time.process_time(); "
        f"import {module}; print(time.process_time() - start)"
    )
    with tempfile.TemporaryDirectory() as bytecode:
        # As in an installed package: the first run leaves the bytecode that the others read.
        env = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
        command = [sys.executable, "-c", script]
        times = [
            float(subprocess.check_output(command, cwd=ROOT, env=env, text=True))  # noqa: S603  # our own words
            for _ in range(IMPORTS)
        ]
    return min(times) * 1e3


def main() -> None:
    """Print the table, and whether each limit holds on this machine."""
    batch = requested_calls(0)
    document = [{"tool": request.tool, "arguments": request.arguments} for request in batch]
    dumps = best_us(lambda: json.dumps(document))
    size, version = len(json.dumps(document)), sys.version.split()[0]
    print(f"one batch of four calls, {size} bytes of JSON, Python {version}")
    times = [
        Row("json.dumps of the batch", dumps, "us"),
        Row("its four digests (ToolCall.of)", best_us(lambda: calls_of(batch, 0)), "us"),
        *repeated_failure_rows(),
        *pipeline_rows("off", Mode.OFF, declares=True),
        *pipeline_rows("shadow, 2 of 4 harmless", Mode.SHADOW, declares=True, limit=60),
        *pipeline_rows("enforce, 2 of 4 harmless", Mode.ENFORCE, declares=True, limit=60),
        *pipeline_rows("enforce, nothing declared", Mode.ENFORCE, declares=False, limit=60),
    ]
    for row in times:
        print(row.text(dumps))
    rest = [
        Row("repeated failure, one prompt", kept_bytes(one_streak), "bytes", 1024),
        Row("call-id state, one id", kept_bytes(many_ids) / IDS, "bytes", 200),
        Row("import guardwave.reducer", import_ms("guardwave.reducer"), "ms", 30),
        Row("import the standard library's share of the next two", import_ms(STANDARD), "ms"),
        Row(
            "import guardwave.reducer.guards.repeated_failure",
            import_ms("guardwave.reducer.guards.repeated_failure"),
            "ms",
        ),
        Row("import guardwave.reducer.pipeline", import_ms("guardwave.reducer.pipeline"), "ms"),
    ]
    for row in rest:
        print(row.text())


if __name__ == "__main__":
    main()
