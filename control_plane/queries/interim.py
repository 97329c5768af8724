"""Look lines: the looks for harm of a wave, as the pages show them."""

from guardwave.control_plane.core.state import HarmLook
from guardwave.control_plane.queries.page_models import LookLine
from guardwave.control_plane.rollouts.context import Context

SHOWN = 10


def look_lines(
    context: Context, environment: str, guard: str, *, wave: int | None = None
) -> tuple[LookLine, ...]:
    """Return the newest looks of a wave, newest first; by default of the last wave with a look.

    After an alarm, which closes its wave, pages still show that wave.
    """
    looks = context.incidents.harm_looks(environment, guard)
    if wave is None:
        wave = looks[-1].wave if looks else 0
    of_wave = [look for look in looks if look.wave == wave]
    return tuple(_line(look) for look in reversed(of_wave[-SHOWN:]))


def _line(look: HarmLook) -> LookLine:
    missing = tuple(metric for metric in look.metrics if metric.is_untold)
    shown = (*look.raised, *missing) if look.raised else look.metrics
    return LookLine(
        wave=look.wave,
        days=look.days,
        through=look.through,
        is_raised=bool(look.raised),
        lowered=look.lowered,
        sentences=tuple(metric.sentence for metric in shown),
        untold=tuple(metric.metric for metric in missing),
    )
