"""Latency p95: its test at the margin, its bounds at edges of buckets, and its pairs of owners."""

from guardwave.analysis.inference.latency.p95_test import (
    P95Test,
    bound_at,
    interval_at,
    is_at_least,
    prepare_p95_test,
)
from guardwave.analysis.inference.latency.pairs import PairedLatency, pair_durations
from guardwave.analysis.inference.latency.shift import latency_test

__all__ = [
    "P95Test",
    "PairedLatency",
    "bound_at",
    "interval_at",
    "is_at_least",
    "latency_test",
    "pair_durations",
    "prepare_p95_test",
]
