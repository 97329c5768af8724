"""Missing values that would show a harm: from intake to a verdict and to a look."""

from dataclasses import dataclass, replace
from datetime import date, timedelta

import orjson
import pytest

from guardwave.control_plane.core.state import Evaluation
from guardwave.control_plane.jobs.bundles import unpack_bundle
from guardwave.control_plane.jobs.replay import replay
from guardwave.control_plane.queries.interim import look_lines
from guardwave.reducer.vocabulary import Metric, Mode, Verdict
from tests.control_plane.ingest.test_intake_of_missing_values import DURATION, READ, TURNS, WRITTEN
from tests.support.hosts import Assigner, Event, Prompt
from tests.support.lives import BEGAN, Life
from tests.support.worlds import ENVIRONMENT, GUARD

AMOUNTS = (READ, WRITTEN, TURNS)
ALWAYS = date(2026, 12, 31)


@dataclass(frozen=True)
class PartialPrompt(Prompt):
    """A prompt that takes its own time, and whose end leaves some attributes out."""

    seconds: float = 30.0
    left_out: tuple[str, ...] = ()

    def end(self, **changed) -> Event:
        end = super().end(**{DURATION: self.seconds, **changed})
        kept = {key: value for key, value in end.attributes.items() if key not in self.left_out}
        return replace(end, attributes=kept)


def partial(prompt: Prompt, **changes) -> PartialPrompt:
    """Return it with a transition: one end of a day is under 1 % of the day's records then."""
    fields = {name: getattr(prompt, name) for name in Prompt.__dataclass_fields__}
    return PartialPrompt(**{**fields, "decisions": ("tracked",), **changes})


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


def with_more_tokens(prompt: Prompt, *, hider: str | None, until: date = ALWAYS) -> PartialPrompt:
    """Return a warned prompt with 1.5 times the tokens and turns.

    Every second prompt of the owner `hider` leaves them out: one of 38 warned prompts of a day.
    """
    if not is_treated(prompt):
        return partial(prompt)
    hides = is_of(hider, prompt) and prompt.at.date() <= until
    is_hidden = hides and number_of(prompt) % 2 == 0
    return partial(prompt, tokens=1500, turns=8, left_out=AMOUNTS if is_hidden else ())


def with_more_time(prompt: Prompt, *, hider: str | None, until: date = ALWAYS) -> PartialPrompt:
    """Return a warned prompt with 1.4 times the time; long ones of the owner `hider` hide it."""
    seconds = 10.0 + 20.0 * number_of(prompt)
    if not is_treated(prompt):
        return partial(prompt, seconds=seconds)
    hides = is_of(hider, prompt) and prompt.at.date() <= until
    is_hidden = hides and seconds * 1.4 > 22.0
    return partial(prompt, seconds=seconds * 1.4, left_out=(DURATION,) if is_hidden else ())


@pytest.fixture
def life(store):
    """A warn wave, of 24 owners 19 warned, before its first day."""
    found = Life.begin(store)
    found.live(3)
    found.promote(Mode.WARN)
    return found


def metrics_of(done: Evaluation):
    found = orjson.loads(done.result or "{}")
    return {finding["metric"]: finding for finding in found["metrics"]}


@pytest.mark.parametrize(
    ("change", "lacking"),
    [
        pytest.param(with_more_tokens, {Metric.TOKENS, Metric.TURNS}, id="tokens and turns"),
        pytest.param(with_more_time, {Metric.LATENCY_P95}, id="durations"),
    ],
)
@pytest.mark.parametrize("hides", [True, False], ids=["hidden on six days", "reported on all days"])
def test_values_missing_on_six_of_seven_days_are_no_data(life, change, lacking, hides):
    """The last day reports everything, and on all days more than 99 % of the records conform."""
    hider = a_warned_owner(life) if hides else None
    last = BEGAN.date() + timedelta(days=10)
    life.live(8, change=lambda prompt: change(prompt, hider=hider, until=last))
    done = life.evaluate()
    found = metrics_of(done)
    missing = {name for name, finding in found.items() if finding["reason"] == "untold"}
    assert missing == (lacking if hides else set())
    assert {found[name]["verdict"] for name in missing} <= {Verdict.NO_DATA}
    assert (done.verdict == "no_data") is hides
    (contract,) = [
        load for load in orjson.loads(done.result or "{}")["checks"] if load["check"] == "contract"
    ]
    assert contract["verdict"] == "within"


def test_the_verdict_names_the_share_and_a_bundle_replays_it(life):
    hider = a_warned_owner(life)
    life.live(8, change=lambda prompt: with_more_tokens(prompt, hider=hider))
    done = life.evaluate()
    assert metrics_of(done)["tokens"]["sentence"] == (
        "No data: 7 of 266 prompts of warned (2.63 %) left out their tokens, input or output; at "
        "most 1 % may."
    )
    packed = b"".join(life.context.gates.bundle_parts(ENVIRONMENT, GUARD, done.id))
    assert replay(unpack_bundle(packed)).difference is None


def test_days_before_a_wave_without_values_are_not_used_as_covariate(store):
    life = Life.begin(store)

    def leaves_out(prompt: Prompt) -> PartialPrompt:
        is_hidden = is_of(life.owners[0], prompt) and number_of(prompt) == 0
        return partial(prompt, left_out=(WRITTEN,) if is_hidden else ())

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
    life.live(2, change=lambda prompt: with_more_tokens(prompt, hider=hider))
    life.work()
    (look,) = life.context.incidents.harm_looks(ENVIRONMENT, GUARD)
    assert [metric.metric for metric in look.metrics if metric.is_untold] == [
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
