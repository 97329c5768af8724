"""Imports a day of simulated history through the real intake, at the time it tells of."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime, timedelta

from control_plane.access import Identity
from control_plane.clock import NANOSECONDS, fixed, to_ns
from control_plane.context import Context
from control_plane.demo.story import GUARD, VERSION, Fleet, Owner, moments
from control_plane.errors import RuleViolated
from control_plane.ingest.intake import Intake
from control_plane.ingest.otlp import LogItem, ResourceLogs, ScopeLogs
from reducer import contract
from reducer.rollout.allotment import Allotment, Place, allot
from reducer.rollout.assignment import Assignment, issue
from reducer.rollout.days import day_start
from reducer.rollout.draw import Roster
from reducer.rollout.eligibility import OwnerFacts, Ownership, Question
from reducer.rollout.pseudonym import pseudonym_of
from reducer.rollout.state import Rollout
from reducer.vocabulary import Route

_ITEMS_AT_ONCE = 4000
_NIGHT = timedelta(hours=30)


class HistoryImport:
    """History of one environment. It takes a demo's store and refuses any other."""

    def __init__(
        self, context: Context, fleet: Fleet, *, producer: Identity, is_demo_store: bool
    ) -> None:
        if not is_demo_store:
            raise RuleViolated(
                "history is imported into a demo's store only; evidence elsewhere comes from "
                "producers, over OTLP"
            )
        self._context = context
        self._fleet = fleet
        self._producer = producer
        self._owners = fleet.owners()

    def import_day(self, day: date, *, opened_at: datetime | None = None) -> int:
        """Import what the fleet would have sent on a day, and seal it; answer how many events.

        The day's rollout, roster and assignments are those in the store now. Prompts that began
        before `opened_at` are left out.
        """
        context = replace(self._context, clock=fixed(day_start(day) + _NIGHT))
        intake = Intake(context)
        from_s = 0.0 if opened_at is None else (opened_at - day_start(day)).total_seconds()
        items = self._items(day, max(0.0, from_s))
        batch: list[LogItem] = []
        count = 0
        for item in items:
            batch.append(item)
            count += 1
            if len(batch) == _ITEMS_AT_ONCE:
                self._send(intake, batch)
                batch = []
        self._send(intake, batch)
        context.evidence.seal(
            self._fleet.environment, day, at=context.clock.now(), longest_outage_seconds=0.0
        )
        return count

    def _items(self, day: date, from_s: float) -> Iterable[LogItem]:
        midnight = to_ns(day_start(day))
        allotments = _Allotments(self._context, self._fleet.environment, day)
        for owner in self._owners:
            allotted, assignment_id = allotments.of(owner)
            for prompt in self._fleet.prompts(owner, day, allotted.mode):
                if prompt.start_s < from_s:
                    continue
                for moment in moments(prompt, mode=allotted.mode, assignment_id=assignment_id):
                    at = midnight + int(moment.at_s * NANOSECONDS)
                    yield LogItem(at, at, moment.event_name, moment.attributes, has_body=False)

    def _send(self, intake: Intake, items: list[LogItem]) -> None:
        if not items:
            return
        resource = {
            "service.name": "simulated-host",
            "service.version": VERSION,
            "service.instance.id": "history",
            "deployment.environment.name": self._fleet.environment,
        }
        batch = ResourceLogs(
            resource, (ScopeLogs(contract.SCOPE, contract.SCOPE_VERSION, tuple(items)),)
        )
        receipt = intake.receive_logs([batch], sender=self._producer, body=b"history")
        if receipt.rejected:
            raise ValueError(f"the story breaks the contract: {receipt.rejected[0].detail}")


class _Allotments:
    """Which assignment each owner had on a day, from the store's rollout and roster."""

    def __init__(self, context: Context, environment: str, day: date) -> None:
        held = context.environments.load(environment)
        rollout = context.environments.rollout(environment, GUARD)
        assert held is not None  # the bootstrap created both
        assert rollout is not None
        self._environment = held
        self._rollout: Rollout = rollout
        self._question = Question(VERSION, Route.INTERACTIVE_FOREGROUND, day)
        self._places = _places(context, rollout)

    def of(self, owner: Owner) -> tuple[Allotment, str]:
        pseudonym = pseudonym_of(bytes.fromhex(self._environment.pseudonym_key), owner.name)
        allotted = allot(
            self._rollout,
            OwnerFacts(Ownership.KNOWN, is_trusted=True),
            self._question,
            place=self._places.get(pseudonym),
            trusted_producers=frozenset(),
        )
        assignment = Assignment(
            GUARD,
            pseudonym,
            allotted.wave,
            allotted.cohort,
            allotted.mode,
            self._rollout.generation,
        )
        tag_key = bytes.fromhex(self._environment.tag_key)
        return allotted, issue(tag_key, self._environment.name, assignment)


def _places(context: Context, rollout: Rollout) -> dict[str, Place]:
    environment, guard = rollout.environment, rollout.guard
    wave = context.environments.wave(environment, guard, rollout.membership_wave)
    roster: Roster | None = None
    if wave is not None:
        roster = context.environments.roster(environment, guard, wave)
    if wave is None or roster is None:
        return {}
    return {
        pseudonym: Place(rank, wave.roster_size, wave.treated, wave.algorithm)
        for rank, pseudonym in enumerate(roster.pseudonyms, start=1)
    }
