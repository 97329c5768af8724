"""Import: an exported archive, written into a store that does not have its environment.

Imported evidence can be judged again, but raises no mode: the environment gets keys of its own, so
that it knows no owner of the archive, and a latch that holds every mode at shadow. Open waves end
with the last day of the archive, so that no day of this store is added to them; the release of the
latch opens new ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import NamedTuple

from guardwave.control_plane.archive.lines import (
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
from guardwave.control_plane.core.errors import BadRequest, RuleViolated, StateConflict
from guardwave.control_plane.core.state import Action, Actor, Latch, Rollback
from guardwave.control_plane.rollouts.changes import (
    Change,
    Note,
    check_reason,
    commit,
    put_rollout,
    put_wave,
)
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.names import (
    check_environment_name,
    check_guard_name,
    check_version_pin,
    new_environment,
    new_salt,
)
from guardwave.control_plane.stores.environments import Write
from guardwave.control_plane.stores.evidence.imports import SEALED_AT, EvidenceImport
from guardwave.control_plane.stores.evidence.pages import CounterTotal, StratumOwnerDay
from guardwave.control_plane.stores.incidents import put_harm_look, put_rollback, put_violation
from guardwave.reducer.rollout.days import day_start
from guardwave.reducer.rollout.draw import Roster
from guardwave.reducer.rollout.state import Rollout, gate_for

_AT_ONCE = 2000
_LATCH_ROLLBACK = 1


class ImportSummary(NamedTuple):
    """The size of an import."""

    environment: str
    days: int
    owner_days: int


def import_archive(
    context: Context, lines: Iterator[Line], *, actor: Actor, reason: str
) -> ImportSummary:
    """Write all lines, then create the environment: until then nobody reads the lines.

    An interrupted import leaves nothing that counts; the next one first deletes its remains.

    Raises:
        InvalidField: the reason is too short, or a name is malformed.
        BadRequest, RuleViolated: this is no archive, or its lines contradict each other.
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
    target = context.imports.open(name, today=context.clock.now().date())
    holder = context.randomness(8).hex()
    if not target.hold(holder):
        raise StateConflict(
            f"another import into {name} is under way, or was killed less than a minute ago; wait"
        )
    is_done = False
    try:
        target.clear()
        contents = _ArchiveContents(target, name, holder)
        for line in lines:
            contents.add(line)
            if contents.is_full:
                contents.flush()
        contents.flush()
        is_done = commit(context, None, _change(context, head, contents, note=(actor, reason)))
    finally:
        if not is_done:
            target.clear()
        target.release()
    if not is_done:
        raise StateConflict(f"environment {name} was created during the import; nothing was kept")
    return ImportSummary(name, contents.days, contents.owner_days)


@dataclass(slots=True)
class _ArchiveContents:
    """The lines read so far: evidence is written in parts, the rest waits for the commit."""

    target: EvidenceImport
    environment: str
    holder: str
    rollouts: dict[str, RolloutLine] = field(default_factory=dict)
    waves: dict[tuple[str, int], WaveLine] = field(default_factory=dict)
    incidents: list[ViolationLine | HarmLookLine] = field(default_factory=list)
    counter_totals: list[CounterTotal] = field(default_factory=list)
    owner_day_lines: list[StratumOwnerDay] = field(default_factory=list)
    days: int = 0
    owner_days: int = 0
    newest_sealed: date | None = None

    @property
    def is_full(self) -> bool:
        return len(self.counter_totals) + len(self.owner_day_lines) >= _AT_ONCE

    def add(self, line: Line) -> None:
        match line:
            case StratumOwnerDay():
                self.owner_day_lines.append(line)
                self.owner_days += 1
            case CounterLine():
                self.counter_totals.append(line.counter_total())
            case DayLine():
                self.target.add_day(line.day, line.fields)
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
        if not self.target.hold(self.holder):
            raise StateConflict(
                f"the import into {self.environment} stood still too long, and another one began; "
                "import it again"
            )
        if self.counter_totals:
            self.target.add_counters(self.counter_totals)
            self.counter_totals.clear()
        if self.owner_day_lines:
            self.target.add_owner_days(self.owner_day_lines)
            self.owner_day_lines.clear()


def _change(
    context: Context, head: Head, contents: _ArchiveContents, *, note: tuple[Actor, str]
) -> Change[None]:
    actor, reason = note
    name, now = head.environment, context.clock.now()
    violations = [
        line.violation.id for line in contents.incidents if isinstance(line, ViolationLine)
    ]
    newest = max(violations, default=0)
    latch = Latch(
        rollback=_LATCH_ROLLBACK,
        reason="The evidence was imported: it can be judged and raises nobody, and no day of this "
        "store is added to it.",
        at=now,
        # None of them is open: a person has seen it in its own store, or the gate reports it.
        first_violation=newest + 1,
        newest_violation=newest,
    )
    guards = tuple(sorted(contents.rollouts))
    record = Rollback(_LATCH_ROLLBACK, now, actor, latch.reason, True, (), guards=guards)
    after = replace(
        new_environment(context, name, requires=head.requires),
        guards=guards,
        latch=latch,
        violations=newest,
        rollbacks=record.id,
    )
    writes = (
        *_rollouts(context, name, contents),
        *_waves(name, contents, ends_at=_end_of(head, contents)),
        *_incidents(name, contents),
        put_rollback(name, record),
    )
    return Change(after, writes, Note(actor, Action.HISTORY_IMPORTED, name, reason), None)


def _rollouts(context: Context, environment: str, contents: _ArchiveContents) -> Iterator[Write]:
    ceiling_bps = context.policies.of(environment).ceiling_bps
    for line in contents.rollouts.values():
        open_wave = contents.waves.get((line.guard, line.wave))
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


def _end_of(head: Head, contents: _ArchiveContents) -> datetime:
    """Return the midnight that ends the archive's last complete day.

    A demo seals days that lie in the future of the clock by which it is exported.
    """
    exported = day_start(head.exported_at.date())
    if contents.newest_sealed is None:
        return exported
    return max(exported, day_start(contents.newest_sealed + timedelta(days=1)))


def _waves(environment: str, contents: _ArchiveContents, *, ends_at: datetime) -> Iterator[Write]:
    for (guard, number), line in contents.waves.items():
        wave = line.wave
        roster = Roster(line.roster, wave.treated) if wave.roster_digest else None
        digest = "" if roster is None else roster.digest
        if (len(line.roster), digest) != (wave.roster_size, wave.roster_digest):
            raise RuleViolated(
                f"the roster of wave {number} of {guard} does not have the size and the digest that"
                " its wave names; export it again"
            )
        rollout = contents.rollouts.get(guard)
        if rollout is not None and rollout.wave == number and wave.closed_at is None:
            wave = replace(wave, closed_at=max(wave.opened_at, ends_at))
        yield from put_wave(environment, guard, wave, roster)


def _incidents(environment: str, contents: _ArchiveContents) -> Iterator[Write]:
    for line in contents.incidents:
        if isinstance(line, ViolationLine):
            yield put_violation(environment, line.violation)
        else:
            yield put_harm_look(environment, line.look)
