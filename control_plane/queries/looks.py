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
    told = look.raised or look.metrics
    return LookLine(
        wave=look.wave,
        days=look.days,
        through=look.through,
        is_raised=bool(look.raised),
        lowered=look.lowered,
        sentences=tuple(each.sentence for each in told),
    )
