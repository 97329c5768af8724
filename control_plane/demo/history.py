"""History import: past days of simulated telemetry, taken in by the real intake."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime, timedelta

from guardwave.control_plane.core.clock import NANOSECONDS, fixed_clock, to_ns
from guardwave.control_plane.core.errors import RuleViolated
from guardwave.control_plane.demo.story import GUARD, VERSION, Fleet, Owner, simulated_events
from guardwave.control_plane.ingest.intake import Intake
from guardwave.control_plane.ingest.model.otlp_values import LogItem, ResourceLogs, ScopeLogs
from guardwave.control_plane.rollouts.access import Identity
from guardwave.control_plane.rollouts.context import Context
from guardwave.reducer import contract
from guardwave.reducer.rollout.allotment import Allotment, Place, allot
from guardwave.reducer.rollout.assignment import Assignment, issue
from guardwave.reducer.rollout.days import day_start
from guardwave.reducer.rollout.draw import Roster
from guardwave.reducer.rollout.eligibility import OwnerFacts, Ownership, Question
from guardwave.reducer.rollout.pseudonym import pseudonym_of
from guardwave.reducer.rollout.state import Rollout
from guardwave.reducer.vocabulary import Route

_ITEMS_AT_ONCE = 4000
_NIGHT = timedelta(hours=30)


class HistoryImport:
    """The history of one environment, for a demo's store and no other."""

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
        """Import and seal a day of the fleet's telemetry; return the number of events.

        Rollout, roster and assignments are the present ones of the store. Prompts that began before
        `opened_at` are left out.
        """
        context = replace(self._context, clock=fixed_clock(day_start(day) + _NIGHT))
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
            allotment, assignment_id = allotments.of(owner)
            for prompt in self._fleet.prompts(owner, day, allotment.mode):
                if prompt.start_s < from_s:
                    continue
                for event in simulated_events(
                    prompt, mode=allotment.mode, assignment_id=assignment_id
                ):
                    at = midnight + int(event.at_s * NANOSECONDS)
                    yield LogItem(at, at, event.event_name, event.attributes, has_body=False)

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
    """The owners' assignments on a day, from the store's rollout and roster."""

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
        allotment = allot(
            self._rollout,
            OwnerFacts(Ownership.KNOWN, is_trusted=True),
            self._question,
            place=self._places.get(pseudonym),
            trusted_producers=frozenset(),
        )
        assignment = Assignment(
            GUARD,
            pseudonym,
            allotment.wave,
            allotment.cohort,
            allotment.mode,
            self._rollout.generation,
        )
        tag_key = bytes.fromhex(self._environment.tag_key)
        return allotment, issue(tag_key, self._environment.name, assignment)


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
