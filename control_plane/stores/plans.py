"""Plans of waves to come: numbered, asked for by a person, made by the worker."""

from redis import Redis

from control_plane.state import Plan
from control_plane.stores.codec import decode, encode
from control_plane.stores.connection import unavailable
from control_plane.stores.keys import EnvironmentKeys
from control_plane.stores.replies import whole


class PlanStore:
    """Plans of all environments. They decide nothing, so the last write of one stands."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @unavailable()
    def next_plan(self, environment: str, guard: str) -> int:
        """Return a new number for a plan."""
        return int(self._redis.incr(EnvironmentKeys(environment).plan_count(guard)))

    @unavailable()
    def save(self, environment: str, plan: Plan) -> None:
        """Keep a plan, pending or with what became of it."""
        self._redis.set(EnvironmentKeys(environment).plan(plan.guard, plan.id), encode(plan))

    @unavailable()
    def plan(self, environment: str, guard: str, number: int) -> Plan | None:
        """Return one plan, None when its number was never given."""
        stored = self._redis.get(EnvironmentKeys(environment).plan(guard, number))
        return None if stored is None else decode(Plan, stored)

    @unavailable()
    def count(self, environment: str, guard: str) -> int:
        """Return the highest number given to a plan so far."""
        return whole(self._redis.get(EnvironmentKeys(environment).plan_count(guard)))

    def newest(
        self, environment: str, guard: str, *, before: int | None = None, at_most: int
    ) -> tuple[Plan, ...]:
        """Return plans with a number below `before`, newest first."""
        last = self.count(environment, guard) if before is None else before - 1
        numbers = range(last, max(0, last - at_most), -1)
        found = (self.plan(environment, guard, number) for number in numbers)
        return tuple(each for each in found if each is not None)
