"""Retention: once a day, in small parts, deletes what no gate can use any more."""

from datetime import date, timedelta

from guardwave.control_plane.core.clock import NANOSECONDS
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.evidence.store import KEPT_DAYS

SECONDS_A_DAY = 86_400
# A stratum's last use is the day of its records; the end or the loss of a prompt may be written up
# to four days later.
CELLS_KEPT_DAYS = KEPT_DAYS + 10


class Retention:
    """The day's deletions in each environment that this worker holds."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._done: dict[str, date] = {}
        self._cursors: dict[str, int] = {}

    def forget_next(self, environment: str) -> bool:
        """Delete the next part of what is due today; False when all of it is done."""
        today = self._context.clock.now().date()
        if self._done.get(environment) == today:
            return False
        cursor = self._cursors.get(environment)
        if cursor is None:
            self._forget_all_but_owners(environment)
        oldest = today - timedelta(days=KEPT_DAYS)
        after = self._context.retention.forget_owners(
            environment, last_seen_before=oldest, cursor=cursor or 0
        )
        if after:
            self._cursors[environment] = after
        else:
            self._cursors.pop(environment, None)
            self._done[environment] = today
        return True

    def _forget_all_but_owners(self, environment: str) -> None:
        now_second = self._context.clock.now_ns() // NANOSECONDS
        before = now_second - KEPT_DAYS * SECONDS_A_DAY
        unused = self._context.clock.now().date() - timedelta(days=CELLS_KEPT_DAYS)
        self._context.retention.forget_days(environment)
        self._context.retention.forget_strata(environment, last_used_before=unused)
        self._context.retention.forget_sources(environment, before_second=before)
        self._context.intake.forget_treated(environment, before_second=before)
