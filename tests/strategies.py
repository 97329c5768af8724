"""Hypothesis strategies: owners, rosters, rollouts and their histories."""

import string
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from hypothesis import strategies as st

from guardwave.reducer.rollout.allotment import Place
from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.rollout.draw import ALGORITHM, BPS
from guardwave.reducer.rollout.eligibility import OwnerFacts, Ownership, Question
from guardwave.reducer.rollout.ladder import (
    Event,
    ModeLowered,
    Refusal,
    Restarted,
    RolloutPromoted,
    RolloutResumed,
    WaveStarted,
    apply,
)
from guardwave.reducer.rollout.pseudonym import unpack
from guardwave.reducer.rollout.state import Rollout, Wave
from guardwave.reducer.vocabulary import Cohort, Mode, Route

OPENED_AT = datetime(2026, 3, 2, tzinfo=UTC)
TODAY = date(2026, 3, 20)
SALT = "000102030405060708090a0b0c0d0e0f"

modes = st.sampled_from(Mode)
cohorts = st.sampled_from(Cohort)
shares = st.integers(0, BPS)
generations = st.integers(0, 999_999)
wave_numbers = st.integers(0, 999_999)
guards = st.text(string.ascii_lowercase + string.digits + "_", min_size=1, max_size=48)
environments = st.text(string.ascii_lowercase + string.digits + "-", min_size=1, max_size=48)
salts = st.text("0123456789abcdef", min_size=32, max_size=32)
pseudonyms = st.binary(min_size=10, max_size=10).map(unpack)
rosters = st.lists(pseudonyms, unique=True, max_size=60)
versions = st.sampled_from(["1.0.0", "1.1.0", "2.0.0"])
pins = st.lists(versions, unique=True, min_size=1, max_size=2).map(tuple)
producers = st.sampled_from(["collector", "laptop", "stranger"])
owner_ids = (
    st.text(min_size=1, max_size=64)
    .filter(str.isprintable)
    .filter(lambda owner: len(owner.encode()) <= 256)
)
days = st.integers(-12, 1).map(lambda offset: TODAY + timedelta(days=offset))

assignments = st.builds(
    Assignment,
    guard=guards,
    pseudonym=pseudonyms,
    wave=wave_numbers,
    cohort=cohorts,
    mode=modes,
    generation=generations,
)
owner_facts = st.builds(
    OwnerFacts,
    ownership=st.none() | st.sampled_from(Ownership),
    is_trusted=st.booleans(),
    versions=st.dictionaries(versions, days, max_size=3),
    producers=st.dictionaries(producers, days, max_size=3),
    prompt_days=st.frozensets(days, max_size=10),
)
questions = st.builds(
    Question,
    version=st.none() | versions,
    route=st.none() | st.sampled_from(Route),
    today=st.just(TODAY),
    names_environment=st.booleans(),
)
places = st.builds(
    Place,
    rank=st.integers(-1, 60),
    size=st.integers(0, 60),
    treated=st.integers(0, 60),
    algorithm=st.sampled_from([ALGORITHM, "guardwave-draw-2", ""]),
)


def wave(
    phase: Mode, number: int, *, treated_bps: int = BPS, pin: Sequence[str] = ("1.0.0",)
) -> Wave:
    """Return a wave as a promotion or a restart would freeze it."""
    return Wave(
        number=number,
        phase=phase,
        version_pin=tuple(pin),
        looks=(7,),
        opened_at=OPENED_AT,
        salt=f"{SALT}.0",
        treated_bps=treated_bps,
    )


# Any state, reachable or not, as a store might hold after a fault.
states = st.builds(
    Rollout,
    environment=environments,
    guard=guards,
    version_pin=pins | st.just(()),
    salt=salts,
    phase=modes,
    generation=generations,
    ceiling_bps=shares,
    salt_epoch=st.integers(0, 50),
    wave=wave_numbers,
    last_wave=wave_numbers,
    membership_wave=wave_numbers,
    treated_bps=shares,
)
# A new rollout; only the ceiling varies, by attestation.
beginnings = st.builds(
    Rollout,
    environment=environments,
    guard=guards,
    version_pin=st.just(("1.0.0",)),
    salt=salts,
    ceiling_bps=st.sampled_from([0, 100, 500, 2000, BPS]),
)
lowerings = st.builds(ModeLowered, cohorts, modes)


@st.composite
def waves_for(draw: st.DrawFn, rollout: Rollout) -> Wave:
    """Draw a wave that fits the rollout in all but perhaps one or two respects."""
    share = st.sampled_from([0, 100, 300, 500, 501, 2000, 8000, BPS]) | shares
    return wave(
        draw(st.sampled_from([Mode.WARN, Mode.ENFORCE, rollout.phase]) | modes),
        draw(st.sampled_from([1, 1, 1, 1, 0, 2])) + rollout.last_wave,
        treated_bps=draw(share),
        pin=draw(st.just(rollout.version_pin) | pins),
    )


@st.composite
def steps_up(draw: st.DrawFn, rollout: Rollout) -> RolloutPromoted:
    """Draw the promotion that the rollout's phase allows next, if it allows any."""
    number = rollout.last_wave + 1
    if rollout.phase.rank < Mode.WARN.rank:
        bps = draw(st.sampled_from([BPS, 8000]))
        return RolloutPromoted(wave(Mode.WARN, number, treated_bps=bps, pin=rollout.version_pin))
    present = rollout.treated_bps if rollout.phase is Mode.ENFORCE else 0
    bps = draw(st.integers(min(present + 1, rollout.ceiling_bps), rollout.ceiling_bps))
    return RolloutPromoted(wave(Mode.ENFORCE, number, treated_bps=bps, pin=rollout.version_pin))


@st.composite
def restarts(draw: st.DrawFn, rollout: Rollout) -> WaveStarted:
    """Draw a restart of the rollout's phase with its share, or with any other one."""
    bps = draw(st.just(rollout.treated_bps) | shares)
    number = rollout.last_wave + 1
    return WaveStarted(wave(rollout.phase, number, treated_bps=bps, pin=draw(pins)))


def events_for(rollout: Rollout, *, promotions: bool = True) -> st.SearchStrategy[Event]:
    """Return a strategy for any event of the rollout.

    Steps up are frequent, or hardly any history would reach enforce.
    """
    others: st.SearchStrategy[Event] = st.one_of(
        lowerings,
        st.just(Restarted()),
        st.just(RolloutResumed()),
        restarts(rollout),
        waves_for(rollout).map(WaveStarted),
    )
    if not promotions:
        return others
    up: st.SearchStrategy[Event] = steps_up(rollout)
    any_promotion: st.SearchStrategy[Event] = waves_for(rollout).map(RolloutPromoted)
    return st.integers(0, 9).flatmap(
        lambda kind: up if kind < 5 else any_promotion if kind < 6 else others
    )


class Step(NamedTuple):
    """One event of a history: the rollout before it, the ladder's answer, the rollout after it."""

    before: Rollout
    event: Event
    answer: Rollout | Refusal
    after: Rollout


@st.composite
def histories(
    draw: st.DrawFn, *, promotions: bool = True, start: st.SearchStrategy[Rollout] = beginnings
) -> list[Step]:
    """Draw a history of one rollout: one to twenty events, refusals included."""
    rollout = draw(start)
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, 20))):
        event = draw(events_for(rollout, promotions=promotions))
        answer = apply(rollout, event)
        after = rollout if isinstance(answer, Refusal) else answer
        steps.append(Step(rollout, event, answer, after))
        rollout = after
    return steps
