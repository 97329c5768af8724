"""Export: all evidence of an environment as the lines of an archive."""

from collections.abc import Iterator, Sequence
from datetime import date

from guardwave import __version__
from guardwave.control_plane.archive.lines import (
    CounterLine,
    DayLine,
    HarmLookLine,
    Head,
    Line,
    RolloutLine,
    ViolationLine,
    WaveLine,
)
from guardwave.control_plane.core.errors import StateConflict
from guardwave.control_plane.core.state import Environment
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.loading import load_environment
from guardwave.control_plane.stores.evidence.pages import DayBucket
from guardwave.control_plane.stores.evidence.shards import OWNER_BUCKETS
from guardwave.reducer.rollout.state import Rollout


def export_archive(context: Context, environment: str) -> Iterator[Line]:
    """Yield all evidence for the environment's verdicts; owner-days come last, day by day.

    Keys, the salts of future waves, facts of owners, evaluations and the audit log are not part.

    Raises:
        NotFound: no such environment.
        StateConflict: it changed while it was read; the yielded lines are no archive.
    """
    before = load_environment(context, environment)
    days = context.evidence.days(environment)
    revisions = _revisions(context, environment, days)
    yield Head(environment, before.requires, context.clock.now(), __version__)
    yield from _control_lines(context, before)
    for day in days:
        yield DayLine(day, context.pages.day_fields(environment, day))
    strata = context.pages.strata(environment)
    for day in days:
        yield from map(CounterLine.of, context.pages.counters(environment, strata, day))
    with_owners = [numbered for numbered in strata if numbered.stratum.cohort is not None]
    for day in days:
        for bucket in range(OWNER_BUCKETS):
            yield from context.pages.owner_days(environment, with_owners, DayBucket(day, bucket))
    after = load_environment(context, environment)
    if after.head != before.head or _revisions(context, environment, days) != revisions:
        again = "export it again"
        if context.clock.speed != 1.0:
            # A demo may seal a day during each export, so another try might never succeed.
            again = "days of a demo pass in seconds: stop the demo, then export it"
        raise StateConflict(
            f"{environment} changed while it was exported (a rollout, or a sealed day); {again}"
        )


def _control_lines(context: Context, environment: Environment) -> Iterator[Line]:
    name = environment.name
    for rollout in context.environments.rollouts(environment):
        yield _rollout_line(rollout)
        for number in range(1, rollout.last_wave + 1):
            wave = context.environments.wave(name, rollout.guard, number)
            if wave is not None:
                roster = context.environments.roster(name, rollout.guard, wave)
                pseudonyms = () if roster is None else roster.pseudonyms
                yield WaveLine(rollout.guard, wave, pseudonyms)
        for look in context.incidents.harm_looks(name, rollout.guard):
            yield HarmLookLine(look)
    for violation in context.incidents.violations(name):
        yield ViolationLine(violation)


def _rollout_line(rollout: Rollout) -> RolloutLine:
    return RolloutLine(
        guard=rollout.guard,
        version_pin=rollout.version_pin,
        phase=rollout.phase,
        generation=rollout.generation,
        evidence_source=rollout.evidence_source,
        wave=rollout.wave,
        last_wave=rollout.last_wave,
        membership_wave=rollout.membership_wave,
        treated_bps=rollout.treated_bps,
    )


def _revisions(context: Context, environment: str, days: Sequence[date]) -> dict[date, int]:
    return {day.day: day.revision for day in context.evidence.sealed_days(environment, days)}
