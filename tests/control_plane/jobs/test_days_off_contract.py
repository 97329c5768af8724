"""Days off contract: they count for no gate and give their reason."""

from dataclasses import replace
from datetime import timedelta

import orjson
import pytest

from guardwave.control_plane.core.errors import EvaluationStale
from guardwave.control_plane.core.state import Evaluation
from guardwave.control_plane.jobs.gather import gather
from guardwave.control_plane.queries.intake_health import environment_days
from guardwave.control_plane.rollouts.days import wave_days
from guardwave.reducer.vocabulary import Gate, Mode, Verdict
from tests.support.hosts import Event, Prompt, logs
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT


class PromptWithoutStatuses(Prompt):
    """A prompt whose transitions do not say how the calls ended that they are about."""

    def transition(self, sequence: int, decision: str, **changed) -> Event:
        event = super().transition(sequence, decision, **changed)
        kept = {key: held for key, held in event.attributes.items() if "status" not in key}
        return replace(event, attributes=kept)


def of(kind: type[Prompt], prompt: Prompt) -> Prompt:
    fields = {name: getattr(prompt, name) for name in Prompt.__dataclass_fields__}
    return kind(**{**fields, "decisions": ("tracked", "tracked", "would_warn")})


def without_statuses(prompt: Prompt) -> Prompt:
    return of(PromptWithoutStatuses, prompt)


def quarantine(life: Life, records: int = 6) -> None:
    """Let a host send records of the last sealed day that name no version, on that day."""
    now, life.calendar.now = life.calendar.now, life.calendar.now - timedelta(hours=6)
    events = [event for prompt in life.prompts(life.today) for event in prompt.events()]
    life.host.send(logs(events[:records], resource={"service.version": ""}))
    life.calendar.now = now


def live_off_contract(life: Life, days: int) -> None:
    for _ in range(days):
        life.live(1)
        quarantine(life)


def reasons(life: Life) -> list[str | None]:
    """Return why each whole day of the wave does not count."""
    days = wave_days(life.context, ENVIRONMENT, life.wave)
    return [day.reason for day in days if not day.is_running][1:]


def dwell_of(done: Evaluation) -> str:
    checks = orjson.loads(done.result or "{}")["checks"]
    (found,) = (check["sentence"] for check in checks if check["check"] == "dwell")
    return str(found)


OFF = "96 of 102 records met the telemetry contract, 99 % is asked for"


def test_days_of_quarantined_records_are_not_used_when_a_clean_one_comes_after(store):
    life = Life.begin(store)
    live_off_contract(life, 7)
    life.live(1)
    done = life.evaluate()
    assert reasons(life) == [*[OFF] * 7, None]
    assert len(done.days_used) == 1
    assert done.verdict == Verdict.UNPROVEN
    assert dwell_of(done).startswith("1 of 7 complete days; 8 days do not count (the last, ")
    assert OFF in dwell_of(done)


def test_days_without_statuses_are_not_used_when_a_clean_one_comes_after(store):
    life = Life.begin(store)
    life.live(6, change=without_statuses)
    life.live(1, change=lambda prompt: of(Prompt, prompt))
    assert set(reasons(life)[:-1]) == {
        "96 of 240 records met the telemetry contract, 99 % is asked for"
    }
    done = life.evaluate()
    assert (len(done.days_used), done.verdict) == (1, Verdict.UNPROVEN)


def test_a_day_off_the_contract_is_made_up_for_by_a_later_one(store):
    life = Life.begin(store)
    life.live(3)
    live_off_contract(life, 1)
    life.live(4)
    done = life.evaluate()
    assert [reason is None for reason in reasons(life)] == [True] * 3 + [False] + [True] * 4
    assert (len(done.days_used), done.verdict) == (7, Verdict.WITHIN)


def test_telemetry_that_breaks_after_the_days_used_is_seen(store):
    life = Life.begin(store)
    life.live(7)
    live_off_contract(life, 1)
    done = life.evaluate()
    checks = orjson.loads(done.result or "{}")["checks"]
    assert [check["check"] for check in checks if check["verdict"] == "no_data"] == ["contract"]
    assert (len(done.days_used), done.verdict) == (7, Verdict.NO_DATA)


@pytest.mark.parametrize(
    ("records", "counts"),
    [pytest.param(1, True, id="1 of 145 records"), pytest.param(2, False, id="2 of 146 records")],
)
def test_a_day_counts_with_no_more_than_one_record_in_a_hundred_off(store, records, counts):
    life = Life.begin(store)
    life.live(1, per_owner=3)
    quarantine(life, records)
    assert (reasons(life) == [None]) is counts


def test_a_used_day_that_goes_off_contract_makes_its_evaluation_stale(store):
    life = Life.begin(store)
    life.live(7)
    done = life.evaluate()
    assert done.verdict == Verdict.WITHIN
    quarantine(life)
    with pytest.raises(EvaluationStale, match=f"does not count any more: {OFF}"):
        life.ask_promotion(done, Mode.WARN)


@pytest.mark.parametrize(
    ("off", "has_baseline"),
    [pytest.param(0, True, id="8 days that count"), pytest.param(2, False, id="6 that count")],
)
def test_a_week_before_the_wave_has_seven_days_that_met_the_contract(store, off, has_baseline):
    life = Life.begin(store)
    live_off_contract(life, off)
    life.live(8 - off)
    life.promote(Mode.WARN)
    gathered = gather(life.context, life.rollout, life.wave, gate=Gate.WARN).gathered
    assert (gathered.baseline is not None) is has_baseline


def test_no_look_for_harm_rests_on_a_day_off_the_contract(store):
    life = Life.begin(store)
    life.live(3)
    life.promote(Mode.WARN)
    life.live(1)
    live_off_contract(life, 1)
    life.work()
    assert life.context.incidents.harm_looks(ENVIRONMENT, life.rollout.guard) == ()


def test_the_days_of_an_environment_say_so_too(store):
    life = Life.begin(store)
    live_off_contract(life, 1)
    assert environment_days(life.context, ENVIRONMENT)[-1].reason == OFF
