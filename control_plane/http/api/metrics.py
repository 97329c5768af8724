"""Metrics: the Prometheus series of the environments that a token may view."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from flask import Blueprint, Response, g, request
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric

from guardwave import __version__
from guardwave.control_plane.core.errors import Forbidden
from guardwave.control_plane.http.middleware import check_caller, context, keep_private
from guardwave.control_plane.queries.intake_health import IntakeHealth, intake_health
from guardwave.control_plane.rollouts.access import is_permitted
from guardwave.control_plane.rollouts.context import Context
from guardwave.reducer.vocabulary import Role

blueprint = Blueprint("metrics", __name__)
blueprint.before_request(check_caller)
blueprint.after_request(keep_private)


@blueprint.get("/metrics")
def metrics() -> Response:
    """Answer the series in the text format that the caller accepts.

    Raises:
        NotSignedIn: no bearer token, or one that is unknown.
        Forbidden: the token may view no environment.
        StoreUnavailable: the store is away.
    """
    who = g.identity
    names = context().environments.names()
    viewed = tuple(name for name in names if is_permitted(who, Role.VIEWER, name))
    if not is_permitted(who, Role.VIEWER, None):
        raise Forbidden(f"a token of role {who.role} reads no series; use a viewer's")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(IntakeSeries(context(), viewed))
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return Response(encode(registry), content_type=content_type)


class _Families(NamedTuple):
    records: CounterMetricFamily
    violations: CounterMetricFamily
    uncounted_violations: CounterMetricFamily
    stream_faults: GaugeMetricFamily
    overflows: CounterMetricFamily
    unreliable_prompts: CounterMetricFamily
    weak_identity: CounterMetricFamily
    dropped_attributes: CounterMetricFamily
    last_record: GaugeMetricFamily
    still_enforcing: GaugeMetricFamily
    skewed_sources: GaugeMetricFamily
    incomplete_days: GaugeMetricFamily


class IntakeSeries:
    """A Prometheus collector over the environments that a caller may see."""

    def __init__(self, context: Context, environments: tuple[str, ...]) -> None:
        self._context = context
        self._environments = environments

    def collect(self) -> Iterator[Metric]:
        """Yield every series, as the store holds it now.

        Raises:
            StoreUnavailable: the store is away; no series is reported as zero.
        """
        yield InfoMetricFamily(
            "guard_control_plane_build", "This server.", value={"version": __version__}
        )
        families = _families()
        for environment in self._environments:
            _add_intake(families, intake_health(self._context, environment))
            self._add_violations(families, environment)
        yield from families

    def _add_violations(self, families: _Families, environment: str) -> None:
        recorded = self._context.incidents.violations(environment)
        counts = Counter((violation.guard, violation.invariant) for violation in recorded)
        for (guard, invariant), count in sorted(counts.items()):
            families.violations.add_metric([environment, guard, invariant], count)


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
        uncounted_violations=CounterMetricFamily(
            "guard_telemetry_uncounted_violations",
            "Violations that changed nothing: no trusted producer, or no assignment id.",
            labels=["environment", "cause", "invariant"],
        ),
        stream_faults=GaugeMetricFamily(
            "guard_telemetry_stream_faults",
            "Resets, gaps and conflicts of streams of metric points.",
            labels=["environment", "fault"],
        ),
        overflows=CounterMetricFamily(
            "guard_telemetry_overflows",
            "What was counted under `other`, beyond a bound.",
            labels=["environment", "what"],
        ),
        unreliable_prompts=CounterMetricFamily(
            "guard_telemetry_unreliable_prompts",
            "Prompts of hosts that cannot tell failures apart.",
            labels=["environment"],
        ),
        weak_identity=CounterMetricFamily(
            "guard_telemetry_weak_identity_records",
            "Records, repeated ones too, whose Resource names no service.instance.id.",
            labels=["environment"],
        ),
        dropped_attributes=CounterMetricFamily(
            "guard_telemetry_dropped_attributes",
            "Attributes that ended at the door.",
            labels=["environment"],
        ),
        last_record=GaugeMetricFamily(
            "guard_telemetry_last_record_timestamp_seconds",
            "When the last record was accepted, on the environment's clock.",
            labels=["environment"],
        ),
        still_enforcing=GaugeMetricFamily(
            "guard_telemetry_still_enforcing_records",
            "Records under assignment ids from before a rollback that came after it.",
            labels=["environment", "guard"],
        ),
        skewed_sources=GaugeMetricFamily(
            "guard_telemetry_skewed_sources",
            "Producers and versions whose clock seems to be wrong.",
            labels=["environment"],
        ),
        incomplete_days=GaugeMetricFamily(
            "guard_telemetry_incomplete_days",
            "Days since the environment was created, of the last 14, over and not complete.",
            labels=["environment"],
        ),
    )


def _add_intake(families: _Families, health: IntakeHealth) -> None:
    name, counts = health.environment, health.counts
    families.records.add_metric([name, "accepted", ""], counts.accepted)
    families.records.add_metric([name, "duplicate", ""], counts.duplicate)
    for outcome, by_reason in (
        ("refused", counts.refused),
        ("quarantined", counts.quarantined),
        ("ignored", counts.ignored),
    ):
        for reason, count in by_reason.items():
            families.records.add_metric([name, outcome, reason], count)
    for cause, by_invariant in (
        ("untrusted", counts.untrusted_violations),
        ("unvouched", counts.unvouched_violations),
    ):
        for invariant, count in by_invariant.items():
            families.uncounted_violations.add_metric([name, cause, invariant], count)
    for fault, count in counts.streams.items():
        families.stream_faults.add_metric([name, fault], count)
    for what, count in counts.overflow.items():
        families.overflows.add_metric([name, what], count)
    families.unreliable_prompts.add_metric([name], counts.unreliable_prompts)
    families.weak_identity.add_metric([name], counts.weak_identity)
    families.dropped_attributes.add_metric([name], counts.dropped_attributes)
    if health.last_record_at is not None:
        families.last_record.add_metric([name], health.last_record_at.timestamp())
    families.skewed_sources.add_metric([name], sum(source.is_skewed for source in health.sources))
    incomplete = sum(day.reason is not None for day in health.days)
    families.incomplete_days.add_metric([name], incomplete)
    still: Counter[str] = Counter()
    for host in health.still_enforcing:
        still[host.guard] += host.records
    for guard, count in sorted(still.items()):
        families.still_enforcing.add_metric([name, guard], count)
