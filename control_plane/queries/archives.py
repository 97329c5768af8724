"""All evidence of an environment as the lines of an archive."""

from collections.abc import Iterator, Sequence
from datetime import date

from control_plane import __version__
from control_plane.commands.changes import load_environment
from control_plane.context import Context
from control_plane.errors import StateConflict
from control_plane.queries.archive_lines import (
    CounterLine,
    DayLine,
    HarmLookLine,
    Head,
    Line,
    RolloutLine,
    ViolationLine,
    WaveLine,
)
from control_plane.state import Environment
from control_plane.stores.evidence_pages import Place
from control_plane.stores.shards import OWNER_BUCKETS
from reducer.rollout.state import Rollout


def archive_of(context: Context, environment: str) -> Iterator[Line]:
    """Yield all that verdicts on the environment rest on; owner-days come last, day by day.

    Keys, salts to come, facts of owners, evaluations and the audit stay where they are.

    Raises:
        NotFound: no such environment.
        StateConflict: it changed while it was read; what was yielded is no archive.
    """
    held = load_environment(context, environment)
    days = context.evidence.days(environment)
    revisions = _revisions(context, environment, days)
    yield Head(environment, held.requires, context.clock.now(), __version__)
    yield from _control_lines(context, held)
    for day in days:
        yield DayLine(day, context.pages.day_fields(environment, day))
    cells = context.pages.cells(environment)
    for day in days:
        yield from map(CounterLine.of, context.pages.counters(environment, cells, day))
    with_owners = [each for each in cells if each.cell.cohort is not None]
    for day in days:
        for bucket in range(OWNER_BUCKETS):
            place = Place(day, bucket)
            yield from context.pages.owner_days(environment, with_owners, place)
    now = load_environment(context, environment)
    if now.head != held.head or _revisions(context, environment, days) != revisions:
        again = "export it again"
        if context.clock.speed != 1.0:
            # A demo seals a day in the time that an export may take: it might never succeed.
            again = "days of a demo pass in seconds: stop the demo, then export it"
        raise StateConflict(
            f"{environment} changed while it was exported (a rollout, or a sealed day); {again}"
        )


def _control_lines(context: Context, held: Environment) -> Iterator[Line]:
    for rollout in context.environments.rollouts(held):
        yield _rollout_line(rollout)
        for number in range(1, rollout.last_wave + 1):
            wave = context.environments.wave(held.name, rollout.guard, number)
            if wave is not None:
                roster = context.environments.roster(held.name, rollout.guard, wave)
                drawn = () if roster is None else roster.pseudonyms
                yield WaveLine(rollout.guard, wave, drawn)
        for look in context.incidents.harm_looks(held.name, rollout.guard):
            yield HarmLookLine(look)
    for violation in context.incidents.violations(held.name):
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
    return {each.day: each.revision for each in context.evidence.sealed_days(environment, days)}
