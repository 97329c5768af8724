"""Hosts that leave out what would show a harm: through intake to a verdict, and to a look."""

from dataclasses import dataclass, replace
from datetime import date, timedelta

import orjson
import pytest

from control_plane.jobs.bundles import unpacked
from control_plane.jobs.replaying import replay
from control_plane.queries.looks import look_lines
from control_plane.state import Evaluation
from reducer.vocabulary import Metric, Mode, Verdict
from tests.control_plane.hosts import Assigner, Event, Prompt
from tests.control_plane.ingest.test_intake_of_untold import DURATION, READ, TURNS, WRITTEN
from tests.control_plane.lives import BEGAN, Life
from tests.control_plane.worlds import ENVIRONMENT, GUARD

AMOUNTS = (READ, WRITTEN, TURNS)
ALWAYS = date(2026, 12, 31)


@dataclass(frozen=True)
class Told(Prompt):
    """A prompt that takes its own time, and whose end leaves some attributes out."""

    seconds: float = 30.0
    left_out: tuple[str, ...] = ()

    def end(self, **changed) -> Event:
        end = super().end(**{DURATION: self.seconds, **changed})
        kept = {key: told for key, told in end.attributes.items() if key not in self.left_out}
        return replace(end, attributes=kept)


def told(prompt: Prompt, **changes) -> Told:
    """Return it with a transition: one end of a day is under 1 % of the day's records then."""
    fields = {name: getattr(prompt, name) for name in Prompt.__dataclass_fields__}
    return Told(**{**fields, "decisions": ("tracked",), **changes})


def number_of(prompt: Prompt) -> int:
    """Return which prompt of its owner's day it is."""
    return int(prompt.prompt_id.split("/")[-1])


def is_of(owner: str | None, prompt: Prompt) -> bool:
    return prompt.prompt_id.split("/")[0] == owner


def is_treated(prompt: Prompt) -> bool:
    return prompt.mode in {Mode.WARN, Mode.ENFORCE}


def a_warned_owner(life: Life) -> str:
    assigner = Assigner(life.context, life.environment)
    return next(owner for owner in life.owners if assigner.of(owner)[0].mode is Mode.WARN)


def dearer(prompt: Prompt, *, hider: str | None, until: date = ALWAYS) -> Told:
    """Return it with 1.5 times the tokens and turns where it is warned; half the hider's hide it.

    That is one of the 38 warned prompts of a day.
    """
    if not is_treated(prompt):
        return told(prompt)
    hides = is_of(hider, prompt) and prompt.at.date() <= until
    is_hidden = hides and number_of(prompt) % 2 == 0
    return told(prompt, tokens=1500, turns=8, left_out=AMOUNTS if is_hidden else ())


def slower(prompt: Prompt, *, hider: str | None, until: date = ALWAYS) -> Told:
    """Return it with 1.4 times the time where it is warned; what takes the hider long hides it."""
    seconds = 10.0 + 20.0 * number_of(prompt)
    if not is_treated(prompt):
        return told(prompt, seconds=seconds)
    hides = is_of(hider, prompt) and prompt.at.date() <= until
    is_hidden = hides and seconds * 1.4 > 22.0
    return told(prompt, seconds=seconds * 1.4, left_out=(DURATION,) if is_hidden else ())


@pytest.fixture
def life(store):
    """A warn wave, of 24 owners 19 warned, before its first day."""
    found = Life.begin(store)
    found.live(3)
    found.promote(Mode.WARN)
    return found


def metrics_of(done: Evaluation):
    found = orjson.loads(done.result or "{}")
    return {each["metric"]: each for each in found["metrics"]}


@pytest.mark.parametrize(
    ("change", "lacking"),
    [
        pytest.param(dearer, {Metric.TOKENS, Metric.TURNS}, id="tokens and turns"),
        pytest.param(slower, {Metric.LATENCY_P95}, id="durations"),
    ],
)
@pytest.mark.parametrize("hides", [True, False], ids=["hidden on six days", "told on all days"])
def test_what_six_of_seven_days_do_not_tell_is_no_data(life, change, lacking, hides):
    """The last day tells everything, and on all days more than 99 % of the records conform."""
    hider = a_warned_owner(life) if hides else None
    last = BEGAN.date() + timedelta(days=10)
    life.live(8, change=lambda prompt: change(prompt, hider=hider, until=last))
    done = life.evaluate()
    found = metrics_of(done)
    untold = {name for name, each in found.items() if each["reason"] == "untold"}
    assert untold == (lacking if hides else set())
    assert {found[name]["verdict"] for name in untold} <= {Verdict.NO_DATA}
    assert (done.verdict == "no_data") is hides
    (contract,) = [
        each for each in orjson.loads(done.result or "{}")["checks"] if each["check"] == "contract"
    ]
    assert contract["verdict"] == "within"


def test_the_verdict_names_the_share_and_a_bundle_gives_it_again(life):
    hider = a_warned_owner(life)
    life.live(8, change=lambda prompt: dearer(prompt, hider=hider))
    done = life.evaluate()
    assert metrics_of(done)["tokens"]["sentence"] == (
        "No data: 7 of 266 prompts of warned (2.63 %) left out their tokens, input or output; at "
        "most 1 % may."
    )
    packed = b"".join(life.context.gates.bundle_parts(ENVIRONMENT, GUARD, done.id))
    assert replay(unpacked(packed)).difference is None


def test_the_days_before_a_wave_say_that_they_cannot_take_off_noise(store):
    life = Life.begin(store)

    def leaves_out(prompt: Prompt) -> Told:
        is_hidden = is_of(life.owners[0], prompt) and number_of(prompt) == 0
        return told(prompt, left_out=(WRITTEN,) if is_hidden else ())

    life.live(8, change=leaves_out)
    life.promote(Mode.WARN)
    life.live(8)
    found = metrics_of(life.evaluate())
    assert found["tokens"]["without_cuped"] == (
        "7 of 336 prompts before the wave (2.08 %) left out their tokens, input or output; at "
        "most 1 % may"
    )
    assert "left out" not in found["turns"]["without_cuped"]


def test_a_look_says_what_it_could_not_see_and_lowers_nothing(life):
    hider = a_warned_owner(life)
    life.live(2, change=lambda prompt: dearer(prompt, hider=hider))
    life.work()
    (look,) = life.context.incidents.harm_looks(ENVIRONMENT, GUARD)
    assert [each.metric for each in look.metrics if each.is_untold] == [
        Metric.TOKENS,
        Metric.TURNS,
    ]
    assert (look.raised, look.lowered) == ((), False)
    (line,) = look_lines(life.context, ENVIRONMENT, GUARD)
    assert line.untold == (Metric.TOKENS, Metric.TURNS)
    assert (
        "No data about tokens: 1 of 38 prompts of warned (2.63 %) left out their tokens, input or "
        "output; at most 1 % may."
    ) in line.sentences
