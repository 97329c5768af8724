"""`guardwave replay-guard`: a guard's decisions about recorded receipts, counted."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import click

from guardwave.reducer.conformance import GUARDS, MACHINES, Machine
from guardwave.reducer.vocabulary import Mode

MOST_LINE_BYTES = 8 * 1024 * 1024
# Guards whose state a new prompt resets, all or a part of it (docs/guards).
_RESET_BY_PROMPTS = frozenset({"repeated-failure", "duplicate-call-id"})
# Fields of an output whose values are counted; each has a closed set of values.
_COUNTED_FIELDS = ("decision", "reason", "action", "turn_outcome", "failure")


@dataclass(slots=True)
class Session:
    """One machine, and the prompt that its last receipt belonged to."""

    machine: Machine
    prompt: object = None


@dataclass(slots=True)
class Replay:
    """The sessions so far, and how often each value was answered."""

    guard: str
    config: Mapping[str, object]
    sessions: dict[str, Session] = field(default_factory=dict)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    receipts: int = 0

    def step(self, receipt: Mapping[str, object]) -> Mapping[str, object]:
        """Pass one receipt to the machine of its session and count its answer.

        Raises:
            ValueError: the receipt names no session, or the guard rejects its fields.
        """
        fields = dict(receipt)
        name, prompt = fields.pop("session", None), fields.pop("prompt", None)
        if not isinstance(name, str) or not name:
            raise ValueError("session is missing; name the session, run or prompt of the receipt")
        session = self.sessions.get(name)
        if session is None:
            session = Session(MACHINES[self.guard](self.config), prompt)
            self.sessions[name] = session
        elif prompt != session.prompt:
            session.prompt = prompt
            if self.guard in _RESET_BY_PROMPTS:
                session.machine.step({"event": "new_prompt"})
        output = session.machine.step(fields)
        self.receipts += 1
        self._count(output)
        return output

    def _count(self, output: Mapping[str, object]) -> None:
        for name in _COUNTED_FIELDS:
            if isinstance(output.get(name), str):
                self.counts[name, str(output[name])] += 1
        for collection, name in (("calls", "action"), ("results", "decision")):
            calls = output.get(collection)
            for call in calls if isinstance(calls, list) else ():
                self.counts[f"call {name}", str(call[name])] += 1


@click.command(name="replay-guard")
@click.argument(
    "receipts",
    metavar="RECEIPTS.ndjson",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option("--guard", type=click.Choice(GUARDS), default="repeated-failure", show_default=True)
@click.option(
    "--mode", type=click.Choice([mode.value for mode in Mode]), help="Of repeated-failure alone."
)
@click.option("--config", default="{}", help="The guard's settings as a JSON object.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "json", "ndjson"]), default="table",
    help="Counts as a table or JSON, or every answer as one line.",
)  # fmt: skip
def replay_guard(receipts: Path, *, guard: str, mode: str | None, config: str, output: str) -> None:
    """Run recorded RECEIPTS through a guard and count what it would have decided.

    Each line is a JSON object: `session`, optionally `prompt`, and the fields of one input in the
    terms of the vectors. Lines of one session share one state, in the order of the file.
    """
    replay = Replay(guard, _config(config, guard, mode))
    with receipts.open("rb") as lines, _progress(receipts.stat().st_size) as advance:
        for number, line in _numbered_lines(lines):
            if line.strip():
                answer = _step(replay, line, f"{receipts}:{number}")
                if output == "ndjson":
                    click.echo(json.dumps({"line": number, **answer}))
            advance(len(line))
    if output != "ndjson":
        _print_counts(replay, as_json=output == "json")


@contextmanager
def _progress(size_bytes: int) -> Iterator[Callable[[int], None]]:
    """Show on a terminal's stderr how much of the file is done; elsewhere show nothing."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=size_bytes, label="receipts", file=sys.stderr) as bar:
        yield bar.update


def _numbered_lines(lines: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := lines.readline(MOST_LINE_BYTES):
        number += 1
        yield number, line


def _step(replay: Replay, line: bytes, place: str) -> Mapping[str, object]:
    try:
        if len(line) == MOST_LINE_BYTES:
            raise ValueError(f"the line has {MOST_LINE_BYTES} bytes or more; split the receipt")
        receipt = json.loads(line)
        if not isinstance(receipt, dict):
            raise ValueError("the line is no JSON object; write one receipt a line")
        return replay.step(receipt)
    except (ValueError, RecursionError) as error:
        raise click.ClickException(f"{place}: {error}") from error


def _config(text: str, guard: str, mode: str | None) -> Mapping[str, object]:
    try:
        config = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint="--config") from error
    if not isinstance(config, dict):
        raise click.BadParameter("not a JSON object", param_hint="--config")
    if mode is None:
        return config
    if guard != "repeated-failure":
        raise click.BadParameter(
            f"the receipts of {guard} are replayed in enforce; leave it out", param_hint="--mode"
        )
    return {**config, "mode": mode}


def _print_counts(replay: Replay, *, as_json: bool) -> None:
    counts: dict[str, dict[str, int]] = {}
    for (name, value), count in sorted(replay.counts.items()):
        counts.setdefault(name, {})[value] = count
    if as_json:
        summary = {
            "guard": replay.guard,
            "receipts": replay.receipts,
            "sessions": len(replay.sessions),
            "counts": counts,
        }
        click.echo(json.dumps(summary))
        return
    click.echo(f"{replay.guard}: {replay.receipts} receipts of {len(replay.sessions)} sessions")
    for name, values in counts.items():
        for value, count in values.items():
            click.echo(f"  {name:<14} {value:<24} {count:>9}")
