"""Series for Prometheus, read from the store when they are asked for: every worker tells the same.

Labels are of closed sets and the names of environments and guards, never an owner, a prompt or a
text that a host chose.
"""

from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric

from control_plane import __version__
from control_plane.context import Context
from control_plane.queries.intake_health import IntakeHealth, intake_health


class _Families(NamedTuple):
    records: CounterMetricFamily
    violations: CounterMetricFamily
    uncounted: CounterMetricFamily
    streams: GaugeMetricFamily
    overflows: CounterMetricFamily
    unreliable: CounterMetricFamily
    weak: CounterMetricFamily
    dropped: CounterMetricFamily
    last_record: GaugeMetricFamily
    still: GaugeMetricFamily
    skewed: GaugeMetricFamily
    incomplete: GaugeMetricFamily


class IntakeSeries:
    """A Prometheus collector over the environments that a caller may see."""

    def __init__(self, context: Context, environments: tuple[str, ...]) -> None:
        self._context = context
        self._environments = environments

    def collect(self) -> Iterator[Metric]:
        """Yield every series, as the store holds it now.

        Raises:
            StoreUnavailable: the store is away; no series is told as zero.
        """
        yield InfoMetricFamily(
            "guard_control_plane_build", "This server.", value={"version": __version__}
        )
        families = _families()
        for environment in self._environments:
            _tell(families, intake_health(self._context, environment))
            self._tell_violations(families, environment)
        yield from families

    def _tell_violations(self, families: _Families, environment: str) -> None:
        counted: dict[tuple[str, str], int] = {}
        for each in self._context.incidents.violations(environment):
            key = (each.guard, each.invariant)
            counted[key] = counted.get(key, 0) + 1
        for (guard, invariant), many in sorted(counted.items()):
            families.violations.add_metric([environment, guard, invariant], many)


def _families() -> _Families:
    return _Families(
        records=CounterMetricFamily(
            "guard_telemetry_records",
            "Telemetry items by what became of them.",
            labels=["environment", "outcome", "reason"],
        ),
        violations=CounterMetricFamily(
            "guard_invariant_violations",
            "Invariant violations that were recorded.",
            labels=["environment", "guard", "invariant"],
        ),
        uncounted=CounterMetricFamily(
            "guard_telemetry_uncounted_violations",
            "Violations that changed nothing: no trusted producer, or no assignment id.",
            labels=["environment", "cause", "invariant"],
        ),
        streams=GaugeMetricFamily(
            "guard_telemetry_stream_faults",
            "Resets, gaps and conflicts of streams of metric points.",
            labels=["environment", "fault"],
        ),
        overflows=CounterMetricFamily(
            "guard_telemetry_overflows",
            "What was counted under `other`, beyond a bound.",
            labels=["environment", "what"],
        ),
        unreliable=CounterMetricFamily(
            "guard_telemetry_unreliable_prompts",
            "Prompts of hosts that cannot tell failures apart.",
            labels=["environment"],
        ),
        weak=CounterMetricFamily(
            "guard_telemetry_weak_identity_records",
            "Records, repeated ones too, whose Resource names no service.instance.id.",
            labels=["environment"],
        ),
        dropped=CounterMetricFamily(
            "guard_telemetry_dropped_attributes",
            "Attributes that ended at the door.",
            labels=["environment"],
        ),
        last_record=GaugeMetricFamily(
            "guard_telemetry_last_record_timestamp_seconds",
            "When the last record was accepted, on the environment's clock.",
            labels=["environment"],
        ),
        still=GaugeMetricFamily(
            "guard_telemetry_still_enforcing_records",
            "Records under assignment ids from before a rollback that came after it.",
            labels=["environment", "guard"],
        ),
        skewed=GaugeMetricFamily(
            "guard_telemetry_skewed_sources",
            "Producers and versions whose clock seems to be wrong.",
            labels=["environment"],
        ),
        incomplete=GaugeMetricFamily(
            "guard_telemetry_incomplete_days",
            "Days since the environment was created, of the last 14, over and not complete.",
            labels=["environment"],
        ),
    )


def _tell(families: _Families, health: IntakeHealth) -> None:
    name, counts = health.environment, health.counts
    families.records.add_metric([name, "accepted", ""], counts.accepted)
    families.records.add_metric([name, "duplicate", ""], counts.duplicate)
    for outcome, by_reason in (
        ("refused", counts.refused),
        ("quarantined", counts.quarantined),
        ("ignored", counts.ignored),
    ):
        for reason, many in by_reason.items():
            families.records.add_metric([name, outcome, reason], many)
    for cause, by_invariant in (
        ("untrusted", counts.untrusted_violations),
        ("unvouched", counts.unvouched_violations),
    ):
        for invariant, many in by_invariant.items():
            families.uncounted.add_metric([name, cause, invariant], many)
    for fault, many in counts.streams.items():
        families.streams.add_metric([name, fault], many)
    for what, many in counts.overflow.items():
        families.overflows.add_metric([name, what], many)
    families.unreliable.add_metric([name], counts.unreliable_prompts)
    families.weak.add_metric([name], counts.weak_identity)
    families.dropped.add_metric([name], counts.dropped_attributes)
    if health.last_record_at is not None:
        families.last_record.add_metric([name], health.last_record_at.timestamp())
    families.skewed.add_metric([name], sum(each.is_skewed for each in health.sources))
    incomplete = sum(each.reason is not None for each in health.days)
    families.incomplete.add_metric([name], incomplete)
    still: dict[str, int] = {}
    for each in health.still_enforcing:
        still[each.guard] = still.get(each.guard, 0) + each.records
    for guard, many in sorted(still.items()):
        families.still.add_metric([name, guard], many)
