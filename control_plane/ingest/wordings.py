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
# Wording, nanoseconds since 1970 on the environment's clock, numbers of an end, and the record as
# it came. A plain tuple: there is one for each record.
Said: TypeAlias = tuple[Wording, int, EndNumbers | None, bytes]


class Run(NamedTuple):
    """Records of one prompt that follow each other and say what earlier ones said.

    `assignment_ids` are their own, () where they have none.
    """

    prompt_id: str
    assignment_ids: tuple[str, ...]
    said: list[Said]


class Repeated(NamedTuple):
    """The runs of one Resource, and whose they are."""

    origin: Origin
    runs: Sequence[Run]

    @property
    def size(self) -> int:
        """How many records they are."""
        return sum([len(run.said) for run in self.runs])

    def ids_of(self, run: Run) -> tuple[str, ...]:
        """Return the records' own assignment ids or, without any, the Resource's."""
        return run.assignment_ids or self.origin.assignment_ids

    def spelt_out(self, run: Run, said: Said) -> Worded:
        """Return one of the records."""
        wording, time_ns, numbers, _ = said
        record = replace(
            wording.record,
            origin=self.origin,
            time_ns=time_ns,
            prompt_id=run.prompt_id,
            assignment_ids=self.ids_of(run),
        )
        return with_numbers(record, numbers) if isinstance(record, PromptEnd) else record


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


def with_numbers(end: PromptEnd, numbers: EndNumbers | None) -> PromptEnd:
    """Return the end with these numbers of its own; None for an end that reports none."""
    duration, turns, tool_calls, transitions, input_tokens, output_tokens, after = (
        numbers or NO_NUMBERS
    )
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
