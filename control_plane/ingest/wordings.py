"""What records say apart from who sent them, when, of which prompt, and with what numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from control_plane.ingest.records import Origin, PromptEnd, PromptStart, Transition

Worded = PromptStart | Transition | PromptEnd


@dataclass(frozen=True, slots=True, eq=False)
class Wording:
    """What was read once of all records that say the same; `dropped` counts attributes of each.

    `record` is one that says it, and carries no content. Two wordings are the same only when they
    are one object: that makes one a cheap key.
    """

    record: Worded
    dropped: int


# What each end has of its own, in the order of the fields of `PromptEnd`.
EndNumbers: TypeAlias = tuple[
    float | None, int | None, int | None, int | None, int | None, int | None, int | None
]
NO_NUMBERS: EndNumbers = (None, None, None, None, None, None, None)


class Run(NamedTuple):
    """Records of one prompt and one minute that follow each other and say what earlier ones said.

    They are told in columns: of each its wording, and nanoseconds since 1970 on the environment's
    clock. `numbers` are those of its ends, by the place of the record. `assignment_ids` are their
    own, () where they have none.
    """

    prompt_id: str
    assignment_ids: tuple[str, ...]
    wordings: list[Wording]
    times_ns: list[int]
    numbers: dict[int, EndNumbers]


class Repeated(NamedTuple):
    """The runs of one Resource, and whose they are."""

    origin: Origin
    runs: Sequence[Run]

    @property
    def size(self) -> int:
        """How many records they are."""
        return sum([len(run.wordings) for run in self.runs])

    def ids_of(self, run: Run) -> tuple[str, ...]:
        """Return the records' own assignment ids or, without any, the Resource's."""
        return run.assignment_ids or self.origin.assignment_ids

    def spelt_out(self, run: Run, at: int) -> Worded:
        """Return the record at this place of the run."""
        record = replace(
            run.wordings[at].record,
            origin=self.origin,
            time_ns=run.times_ns[at],
            prompt_id=run.prompt_id,
            assignment_ids=self.ids_of(run),
        )
        if isinstance(record, PromptEnd):
            return with_numbers(record, run.numbers.get(at, NO_NUMBERS))
        return record


def numbers_of_end(end: PromptEnd) -> EndNumbers:
    """Return what an end has of its own."""
    return (
        end.duration_seconds,
        end.turns,
        end.tool_calls,
        end.transitions,
        end.input_tokens,
        end.output_tokens,
        end.calls_after_would_stop,
    )


def with_numbers(end: PromptEnd, numbers: EndNumbers) -> PromptEnd:
    """Return the end with these numbers of its own."""
    duration, turns, tool_calls, transitions, input_tokens, output_tokens, after = numbers
    return replace(
        end,
        duration_seconds=duration,
        turns=turns,
        tool_calls=tool_calls,
        transitions=transitions,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        calls_after_would_stop=after,
    )
