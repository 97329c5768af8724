"""Plans of future waves: numbered, requested by a person and made by the worker."""

from redis import Redis

from guardwave.control_plane.core.state import Plan
from guardwave.control_plane.stores.codec import decode, encode
from guardwave.control_plane.stores.keys import EnvironmentKeys
from guardwave.control_plane.stores.server import reply_int, translate_store_errors


class PlanStore:
    """Plans of all environments. They decide nothing, so the last write of each counts."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @translate_store_errors()
    def next_plan(self, environment: str, guard: str) -> int:
        """Return a new number for a plan."""
        return int(self._redis.incr(EnvironmentKeys(environment).plan_count(guard)))

    @translate_store_errors()
    def save(self, environment: str, plan: Plan) -> None:
        """Keep a plan, pending or finished."""
        self._redis.set(EnvironmentKeys(environment).plan(plan.guard, plan.id), encode(plan))

    @translate_store_errors()
    def plan(self, environment: str, guard: str, number: int) -> Plan | None:
        """Return one plan; None when its number was never used."""
        stored = self._redis.get(EnvironmentKeys(environment).plan(guard, number))
        return None if stored is None else decode(Plan, stored)

    @translate_store_errors()
    def count(self, environment: str, guard: str) -> int:
        """Return the highest number of a plan so far."""
        return reply_int(self._redis.get(EnvironmentKeys(environment).plan_count(guard)))

    def newest(
        self, environment: str, guard: str, *, before: int | None = None, at_most: int
    ) -> tuple[Plan, ...]:
        """Return plans with a number below `before`, newest first."""
        last = self.count(environment, guard) if before is None else before - 1
        numbers = range(last, max(0, last - at_most), -1)
        found = (self.plan(environment, guard, number) for number in numbers)
        return tuple(plan for plan in found if plan is not None)
