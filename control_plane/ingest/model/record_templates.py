"""Record templates: the part of a record that repeats, without sender, time, prompt and numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from guardwave.control_plane.ingest.model.records import Origin, PromptEnd, PromptStart, Transition

TemplatedRecord = PromptStart | Transition | PromptEnd


@dataclass(frozen=True, slots=True, eq=False)
class RecordTemplate:
    """A record read once for all that repeat it; `dropped` counts the unknown attributes of each.

    `record` is one of them and carries no content. Templates compare by identity, which makes them
    cheap keys.
    """

    record: TemplatedRecord
    dropped: int


# The numbers of an end, in the order of the fields of `PromptEnd`.
EndNumbers: TypeAlias = tuple[
    float | None, int | None, int | None, int | None, int | None, int | None, int | None
]
NO_NUMBERS: EndNumbers = (None, None, None, None, None, None, None)


class RecordBatch(NamedTuple):
    """Consecutive records of one prompt and one minute that repeat known templates, in columns.

    `templates` and `times_ns` have an item for each record; times are nanoseconds since 1970 on the
    environment's clock. `numbers` are those of ends, by the record's position. `assignment_ids` are
    the records' own, () where they have none.
    """

    prompt_id: str
    assignment_ids: tuple[str, ...]
    templates: list[RecordTemplate]
    times_ns: list[int]
    numbers: dict[int, EndNumbers]


class RepeatedRecords(NamedTuple):
    """The record batches of one Resource."""

    origin: Origin
    record_batches: Sequence[RecordBatch]

    @property
    def size(self) -> int:
        """Number of records."""
        return sum([len(batch.templates) for batch in self.record_batches])

    def ids_of(self, batch: RecordBatch) -> tuple[str, ...]:
        """Return the records' own assignment ids or, without any, the Resource's."""
        return batch.assignment_ids or self.origin.assignment_ids

    def expand(self, batch: RecordBatch, position: int) -> TemplatedRecord:
        """Return one record of a batch as the slow path reads it."""
        record = replace(
            batch.templates[position].record,
            origin=self.origin,
            time_ns=batch.times_ns[position],
            prompt_id=batch.prompt_id,
            assignment_ids=self.ids_of(batch),
        )
        if isinstance(record, PromptEnd):
            return with_numbers(record, batch.numbers.get(position, NO_NUMBERS))
        return record


def end_numbers(end: PromptEnd) -> EndNumbers:
    """Return the numbers of an end."""
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
    """Return the end with other numbers."""
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
