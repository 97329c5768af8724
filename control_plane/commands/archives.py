"""Takes an exported archive into a store that does not know its environment.

What is imported can be judged again and raises nobody: the environment gets keys of its own, so
that no owner of the archive is known by it, and a latch that holds every mode at shadow. Open waves
end with the last day of the archive, so that no day of this store is added to them; the latch's
release opens new ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import NamedTuple

from control_plane.commands.changes import (
    Change,
    Note,
    check_reason,
    commit,
    put_rollout,
    put_wave,
)
from control_plane.commands.environments import (
    check_environment_name,
    check_guard_name,
    check_version_pin,
    new_environment,
    new_salt,
)
from control_plane.context import Context
from control_plane.errors import BadRequest, RuleViolated, StateConflict
from control_plane.queries.archive_lines import (
    SCHEMA,
    CounterLine,
    DayLine,
    HarmLookLine,
    Head,
    Line,
    RolloutLine,
    ViolationLine,
    WaveLine,
)
from control_plane.state import Action, Actor, Latch, Rollback
from control_plane.stores.environments import Write
from control_plane.stores.evidence_import import SEALED_AT, EvidenceImport
from control_plane.stores.evidence_pages import Counted, PlacedOwnerDay
from control_plane.stores.incidents import put_harm_look, put_rollback, put_violation
from reducer.rollout.days import day_start
from reducer.rollout.draw import Roster
from reducer.rollout.phases import gate_for
from reducer.rollout.state import Rollout

_AT_ONCE = 2000
_LATCHED_BY = 1


class Imported(NamedTuple):
    """What an import brought into the store."""

    environment: str
    days: int
    owner_days: int


def import_archive(
    context: Context, lines: Iterator[Line], *, actor: Actor, reason: str
) -> Imported:
    """Write all lines, then create the environment: until then nothing reads what is written.

    An import that is cut short leaves nothing that counts; the next one begins by clearing it away.

    Raises:
        InvalidField: the reason is too short, or a name has not the form of one.
        BadRequest, RuleViolated: the archive is none, or its lines do not fit each other.
        StateConflict: the environment exists, or is being imported.
    """
    reason = check_reason(reason)
    head = next(lines, None)
    if not isinstance(head, Head) or head.schema != SCHEMA:
        raise BadRequest(f"line 1 is not the head of an archive of schema {SCHEMA}")
    name = check_environment_name(head.environment)
    if context.environments.load(name) is not None:
        raise StateConflict(
            f"environment {name} exists, and evidence of two stores is never added up; import into "
            "an empty store, such as one that GUARDWAVE_DATA names"
        )
    into = context.imports.into(name, today=context.clock.now().date())
    holder = context.randomness(8).hex()
    if not into.hold(holder):
        raise StateConflict(
            f"another import into {name} is under way, or was killed less than a minute ago; wait"
        )
    is_done = False
    try:
        into.clear()
        taken = _Taken(into, name, holder)
        for line in lines:
            taken.take(line)
            if taken.is_full:
                taken.flush()
        taken.flush()
        is_done = commit(context, None, _change(context, head, taken, note=(actor, reason)))
    finally:
        if not is_done:
            into.clear()
        into.release()
    if not is_done:
        raise StateConflict(f"environment {name} was created during the import; nothing was kept")
    return Imported(name, taken.days, taken.owner_days)


@dataclass(slots=True)
class _Taken:
    """What was read of an archive: evidence is written in parts, the rest waits for the commit."""

    into: EvidenceImport
    environment: str
    holder: str
    rollouts: dict[str, RolloutLine] = field(default_factory=dict)
    waves: dict[tuple[str, int], WaveLine] = field(default_factory=dict)
    incidents: list[ViolationLine | HarmLookLine] = field(default_factory=list)
    counters: list[Counted] = field(default_factory=list)
    placed: list[PlacedOwnerDay] = field(default_factory=list)
    days: int = 0
    owner_days: int = 0
    newest_sealed: date | None = None

    @property
    def is_full(self) -> bool:
        return len(self.counters) + len(self.placed) >= _AT_ONCE

    def take(self, line: Line) -> None:
        match line:
            case PlacedOwnerDay():
                self.placed.append(line)
                self.owner_days += 1
            case CounterLine():
                self.counters.append(line.counted())
            case DayLine():
                self.into.add_day(line.day, line.fields)
                self.days += 1
                if SEALED_AT in line.fields:
                    self.newest_sealed = max(line.day, self.newest_sealed or line.day)
            case RolloutLine():
                self.rollouts[check_guard_name(line.guard)] = line
            case WaveLine():
                self.waves[line.guard, line.wave.number] = line
            case ViolationLine() | HarmLookLine():
                self.incidents.append(line)

    def flush(self) -> None:
        if not self.into.hold(self.holder):
            raise StateConflict(
                f"the import into {self.environment} stood still too long, and another one began; "
                "import it again"
            )
        if self.counters:
            self.into.add_counters(self.counters)
            self.counters.clear()
        if self.placed:
            self.into.add_owner_days(self.placed)
            self.placed.clear()


def _change(
    context: Context, head: Head, taken: _Taken, *, note: tuple[Actor, str]
) -> Change[None]:
    actor, reason = note
    name, now = head.environment, context.clock.now()
    violations = [each.violation.id for each in taken.incidents if isinstance(each, ViolationLine)]
    newest = max(violations, default=0)
    held = Latch(
        rollback=_LATCHED_BY,
        reason="The evidence was imported: it can be judged and raises nobody, and no day of this "
        "store is added to it.",
        at=now,
        # None of them is open: they were looked at where they happened, or make the gate say so.
        first_violation=newest + 1,
        newest_violation=newest,
    )
    guards = tuple(sorted(taken.rollouts))
    record = Rollback(_LATCHED_BY, now, actor, held.reason, True, (), guards=guards)
    after = replace(
        new_environment(context, name, requires=head.requires),
        guards=guards,
        latch=held,
        violations=newest,
        rollbacks=record.id,
    )
    writes = (
        *_rollouts(context, name, taken),
        *_waves(name, taken, ends_at=_end_of(head, taken)),
        *_incidents(name, taken),
        put_rollback(name, record),
    )
    return Change(after, writes, Note(actor, Action.HISTORY_IMPORTED, name, reason), None)


def _rollouts(context: Context, environment: str, taken: _Taken) -> Iterator[Write]:
    ceiling_bps = context.policies.of(environment).ceiling_bps
    for line in taken.rollouts.values():
        open_wave = taken.waves.get((line.guard, line.wave))
        if line.wave and (open_wave is None or open_wave.wave.phase is not line.phase):
            raise RuleViolated(
                f"the archive has no wave {line.wave} in {line.phase} of {line.guard}, which its "
                "rollout says is open; export it again"
            )
        if gate_for(line.phase) is None and line.wave:
            raise RuleViolated(f"wave {line.wave} of {line.guard} is open in phase {line.phase}")
        yield put_rollout(
            Rollout(
                environment=environment,
                guard=line.guard,
                version_pin=check_version_pin(line.version_pin),
                salt=new_salt(context),
                phase=line.phase,
                generation=line.generation,
                evidence_source=line.evidence_source,
                ceiling_bps=ceiling_bps,
                wave=line.wave,
                last_wave=line.last_wave,
                membership_wave=line.membership_wave,
                treated_bps=line.treated_bps,
            )
        )


def _end_of(head: Head, taken: _Taken) -> datetime:
    """Return the midnight after which no day is the archive's: later ones were not over there.

    A demo seals days that are in the future of the clock by which it is exported.
    """
    exported = day_start(head.exported_at.date())
    if taken.newest_sealed is None:
        return exported
    return max(exported, day_start(taken.newest_sealed + timedelta(days=1)))


def _waves(environment: str, taken: _Taken, *, ends_at: datetime) -> Iterator[Write]:
    for (guard, number), line in taken.waves.items():
        wave = line.wave
        roster = Roster(line.roster, wave.treated) if wave.roster_digest else None
        digest = "" if roster is None else roster.digest
        if (len(line.roster), digest) != (wave.roster_size, wave.roster_digest):
            raise RuleViolated(
                f"the roster of wave {number} of {guard} does not have the size and the digest that"
                " its wave names; export it again"
            )
        rollout = taken.rollouts.get(guard)
        if rollout is not None and rollout.wave == number and wave.closed_at is None:
            wave = replace(wave, closed_at=max(wave.opened_at, ends_at))
        yield from put_wave(environment, guard, wave, roster)


def _incidents(environment: str, taken: _Taken) -> Iterator[Write]:
    for line in taken.incidents:
        if isinstance(line, ViolationLine):
            yield put_violation(environment, line.violation)
        else:
            yield put_harm_look(environment, line.look)
