"""The looks for harm of a wave, as the pages show them."""

from control_plane.context import Context
from control_plane.queries.pages import LookLine
from control_plane.state import HarmLook

SHOWN = 10


def look_lines(
    context: Context, environment: str, guard: str, *, wave: int | None = None
) -> tuple[LookLine, ...]:
    """Return the newest looks of a wave, newest first; without a number, of the newest looked at.

    After an alarm the wave that raised it is closed, and is still the one to be told of.
    """
    looks = context.incidents.harm_looks(environment, guard)
    if wave is None:
        wave = looks[-1].wave if looks else 0
    own = [look for look in looks if look.wave == wave]
    return tuple(_line(look) for look in reversed(own[-SHOWN:]))


def _line(look: HarmLook) -> LookLine:
    untold = tuple(each for each in look.metrics if each.is_untold)
    told = (*look.raised, *untold) if look.raised else look.metrics
    return LookLine(
        wave=look.wave,
        days=look.days,
        through=look.through,
        is_raised=bool(look.raised),
        lowered=look.lowered,
        sentences=tuple(each.sentence for each in told),
        untold=tuple(each.metric for each in untold),
    )
