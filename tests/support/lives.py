"""Lives: an environment whose days a test lets pass, with prompts, heartbeats, seals and jobs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256

import orjson
from redis import Redis

from guardwave.control_plane.commands.environments import create_environment, create_rollout
from guardwave.control_plane.commands.evaluations import request_evaluation
from guardwave.control_plane.commands.owners import state_owner_facts
from guardwave.control_plane.commands.promotions import request_promotion
from guardwave.control_plane.core.state import Evaluation, EvaluationStatus, Promotion
from guardwave.control_plane.jobs.seal import seal_due_days
from guardwave.control_plane.jobs.worker import Worker
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.rollouts.promotion_rules import PromotionRequest
from guardwave.control_plane.stores.jobs import HEARTBEAT_S, Job, JobKind
from guardwave.control_plane.stores.keys import EnvironmentKeys
from guardwave.reducer.rollout.days import day_start
from guardwave.reducer.rollout.state import Rollout, Wave, gate_for
from guardwave.reducer.vocabulary import Mode, Verdict
from tests.support.hosts import Assigner, Calendar, Host, Prompt
from tests.support.worlds import ENVIRONMENT, GUARD, KNOWN, OPERATOR, VERSION, WHY, context_over

BEGAN = datetime(2026, 11, 1, 23, 50, tzinfo=UTC)
OWNERS = 24
HOLDER = "worker of the test"

Change = Callable[[Prompt], Prompt | None]


def unchanged(prompt: Prompt) -> Prompt:
    return prompt


@dataclass
class Life:
    """One environment, at first in shadow, with its owners, its host and its calendar."""

    context: Context
    calendar: Calendar
    host: Host
    store: Redis
    environment: str
    owners: tuple[str, ...]

    @classmethod
    def begin(
        cls,
        store: Redis,
        *,
        environment: str = ENVIRONMENT,
        owners: int = OWNERS,
        calendar: Calendar | None = None,
    ) -> "Life":
        calendar = calendar or Calendar(BEGAN)
        context = context_over(store, clock=calendar.clock)
        names = tuple(f"{environment}-owner-{number}" for number in range(owners))
        create_environment(context, environment, requires=None, actor=OPERATOR, reason=WHY)
        create_rollout(
            context, environment, GUARD, version_pin=(VERSION,), actor=OPERATOR, reason=WHY
        )
        state_owner_facts(
            context, environment, dict.fromkeys(names, KNOWN), actor=OPERATOR, reason=WHY
        )
        host = Host(context, environment=environment)
        return cls(context, calendar, host, store, environment, names)

    @property
    def rollout(self) -> Rollout:
        found = self.context.environments.rollout(self.environment, GUARD)
        assert found is not None
        return found

    @property
    def wave(self) -> Wave:
        found = self.context.environments.wave(self.environment, GUARD, self.rollout.wave)
        assert found is not None
        return found

    @property
    def today(self) -> date:
        return self.calendar.now.date()

    def prompts(self, day: date, *, per_owner: int = 2) -> Iterable[Prompt]:
        """Yield the prompts of a day, spread over its hours; one in ten fails."""
        assigner = Assigner(self.context, self.environment)
        for at, owner in enumerate(self.owners):
            assignment, assignment_id = assigner.of(owner)
            for number in range(per_owner):
                second = (at * per_owner + number) * 86_000 // (len(self.owners) * per_owner)
                yield Prompt(
                    f"{owner}/{day}/{number}",
                    (assignment_id,),
                    day_start(day) + timedelta(seconds=second),
                    outcome="failed" if (at + number + day.day) % 10 == 0 else "completed",
                    mode=assignment.mode,
                )

    def live(self, days: int = 1, *, per_owner: int = 2, change: Change = unchanged) -> None:
        """Let whole days pass from the next midnight on, and seal each at 03:00 of the next."""
        for _ in range(days):
            day = self.today + timedelta(days=1 if self.calendar.now.hour >= 12 else 0)
            changed = (change(prompt) for prompt in self.prompts(day, per_owner=per_owner))
            prompts = [prompt for prompt in changed if prompt is not None]
            self.beat(day)
            self.calendar.now = day_start(day) + timedelta(hours=24, minutes=30)
            if prompts:
                assert self.host.send_prompts(*prompts).body == b""
            self.calendar.now = day_start(day) + timedelta(hours=27)
            seal_due_days(self.context, self.environment)

    def beat(self, day: date, *, but: tuple[int, int] = (0, 0)) -> None:
        """Write intake's heartbeats of a day and its end, without those in the outage `but`."""
        first = int(day_start(day).timestamp())
        seconds = range(0, 86_400 + HEARTBEAT_S, HEARTBEAT_S)
        up = [first + at for at in seconds if not but[0] <= at < but[1]]
        # As a day of `JobStore.beat` would, in one call.
        self.store.zadd(EnvironmentKeys(self.environment).heartbeats, {str(at): at for at in up})

    def work(self) -> None:
        """Let a worker do everything that is due."""
        worker = Worker(self.context, holder=HOLDER)
        while worker.run_once():
            pass

    def evaluate(self) -> Evaluation:
        """Request an evaluation of the phase's gate and return the worker's result."""
        gate = gate_for(self.rollout.phase)
        assert gate is not None
        pending = request_evaluation(
            self.context, self.environment, GUARD, gate=gate, actor=OPERATOR
        )
        self.work()
        return self.evaluation(pending.id)

    def evaluation(self, number: int) -> Evaluation:
        found = self.context.gates.evaluation(self.environment, GUARD, number)
        assert found is not None
        return found

    def within(self, **changed: object) -> Evaluation:
        """Store an evaluation with the verdict `within`, as the worker would."""
        rollout = self.rollout
        gate = gate_for(rollout.phase)
        assert gate is not None
        environment = self.context.environments.load(self.environment)
        assert environment is not None
        result = orjson.dumps({"policy_hash": self.context.policies.hash}).decode()
        number = self.context.gates.next_evaluation(self.environment, GUARD)
        done = Evaluation(
            id=number,
            guard=GUARD,
            gate=gate,
            requested_at=self.calendar.now,
            actor=OPERATOR,
            status=EvaluationStatus.DONE,
            evaluated_at=self.calendar.now,
            generation=rollout.generation,
            wave=rollout.wave,
            verdict=Verdict.WITHIN.value,
            sentence="Within.",
            digest=sha256(result.encode()).hexdigest(),
            result=result,
            violations=environment.violations,
        )
        done = replace(done, **changed)  # type: ignore[arg-type]  # fields of an Evaluation
        fence = self.context.jobs.lease(self.environment, HOLDER)
        assert self.context.gates.finish_evaluation(self.environment, done, fence=fence)
        return done

    def ask_promotion(
        self, evaluation: Evaluation, to: Mode, *, share_bps: int | None = None
    ) -> Promotion:
        assert evaluation.digest is not None
        request = PromotionRequest(evaluation.id, evaluation.digest, to, share_bps)
        return request_promotion(
            self.context, self.environment, GUARD, request=request, actor=OPERATOR, reason=WHY
        )

    def promote(self, to: Mode, *, share_bps: int | None = None) -> Promotion:
        """Take a step on a stored evaluation; return the decided promotion."""
        pending = self.ask_promotion(self.within(), to, share_bps=share_bps)
        self.work()
        return self.promotion(pending.id)

    def promotion(self, number: int) -> Promotion:
        found = self.context.gates.promotion(self.environment, GUARD, number)
        assert found is not None
        return found

    def queue(self, evaluation: Evaluation) -> None:
        """Queue an evaluation's job again, as a repeated call after a lost answer would."""
        self.context.jobs.put(self.environment, Job(JobKind.EVALUATE, GUARD, evaluation.id))
