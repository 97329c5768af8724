"""What intake counted, and what to set where telemetry tells less than it could."""

from collections.abc import Mapping
from dataclasses import dataclass

from control_plane.reject_reasons import RejectReason
from control_plane.stores.evidence_events import UNTRUSTED_VIOLATION, UNVOUCHED_VIOLATION
from control_plane.stores.intake_health import WEAK_IDENTITY
from reducer import contract


@dataclass(frozen=True, slots=True)
class IntakeCounts:
    """Counters of intake since it began.

    `refused`, `quarantined` and `ignored` are by reason, the two kinds of violation by invariant:
    those that no trusted producer, and those that no assignment id vouches for, change nothing.
    `streams` counts, of streams of metric points, each `reset`, `gap`, `conflict` of two writers,
    `fall` without a new start, `unknown_start` and `forgotten` point, each point beyond an SDK's
    cardinality limit (`overflow`) and of a histogram with bounds of its own (`explicit_bounds`);
    `overflow` what was counted under `other`. `unreliable_prompts` are those whose host cannot tell
    failures apart, `weak_identity` records, repeated ones too, whose Resource names no instance.
    """

    accepted: int
    duplicate: int
    refused: Mapping[str, int]
    quarantined: Mapping[str, int]
    ignored: Mapping[str, int]
    streams: Mapping[str, int]
    overflow: Mapping[str, int]
    untrusted_violations: Mapping[str, int]
    unvouched_violations: Mapping[str, int]
    unreliable_prompts: int
    dropped_attributes: int
    weak_identity: int

    @property
    def remedies(self) -> tuple[str, ...]:
        """What to do about items that count for nothing, or tell less than they could, in words."""
        told = [
            *_of_reasons("quarantined", self.quarantined),
            *_of_reasons("refused", self.refused),
        ]
        if self.weak_identity:
            told.append(
                f"{_counted(self.weak_identity, 'record')} came without service.instance.id: set "
                "this resource attribute, another one for each process, or several processes may "
                "count as one stream"
            )
        explicit = self.streams.get("explicit_bounds", 0)
        if explicit:
            told.append(
                f"{_counted(explicit, 'point')} of {contract.DURATION_METRIC} came with bounds of "
                "its own, which tell nothing of latency: let the SDK aggregate histograms as "
                "base2_exponential_bucket_histogram"
            )
        overflow = self.streams.get("overflow", 0)
        if overflow:
            told.append(
                f"{_counted(overflow, 'point')} came without attributes: raise the SDK's "
                "cardinality limit of the agent.guard counters, or use fewer attributes"
            )
        return tuple(told)

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "IntakeCounts":
        """Return the counters of their stored names."""

        def by_word(kind: str) -> dict[str, int]:
            prefix = f"{kind}:"
            return {
                name.removeprefix(prefix): many
                for name, many in sorted(counts.items())
                if name.startswith(prefix) and many
            }

        return cls(
            accepted=counts.get("accepted", 0),
            duplicate=counts.get("duplicate", 0),
            refused=by_word("refused"),
            quarantined=by_word("quarantined"),
            ignored=by_word("ignored"),
            streams=by_word("streams"),
            overflow=by_word("overflow"),
            untrusted_violations=by_word(UNTRUSTED_VIOLATION),
            unvouched_violations=by_word(UNVOUCHED_VIOLATION),
            unreliable_prompts=counts.get("unreliable_prompts", 0),
            dropped_attributes=counts.get("dropped_attributes", 0),
            weak_identity=counts.get(WEAK_IDENTITY, 0),
        )


def _of_reasons(outcome: str, counts: Mapping[str, int]) -> list[str]:
    """Name each reason with its remedy, those that a host's set-up causes first."""
    return [
        f"{_counted(counts[reason], 'item')} {'was' if counts[reason] == 1 else 'were'} {outcome} "
        f"({reason}): {reason.remedy}"
        for reason in RejectReason
        if reason in counts
    ]


def _counted(many: int, what: str) -> str:
    return f"{many:,} {what if many == 1 else what + 's'}"
