"""Eligibility: the owners that may get more than shadow, and the reasons against the others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import StrEnum

from guardwave.reducer.vocabulary import Mode, Reason, Route

MEMORY_DAYS = 7
STABLE_DAYS = 3


class Ownership(StrEnum):
    """Whether somebody vouches that the sessions under this id are one owner's."""

    KNOWN = "known"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OwnerFacts:
    """The facts about one owner, stated by a person or learned from accepted records.

    `versions` and `producers` map a service.version and a producer's credential id to the last UTC
    day on which an accepted record showed it. `prompt_days` are the days with prompts.
    """

    ownership: Ownership | None = None
    is_trusted: bool = False
    versions: Mapping[str, date] = field(default_factory=dict)
    producers: Mapping[str, date] = field(default_factory=dict)
    prompt_days: frozenset[date] = frozenset()


@dataclass(frozen=True, slots=True)
class Question:
    """The question of a host: the mode now, for this version and route, on this UTC day."""

    version: str | None
    route: Route | None
    today: date
    names_environment: bool = True


def recent(last_days: Mapping[str, date], today: date) -> frozenset[str]:
    """Return the names whose last day is within the last 7 days, today included."""
    oldest = today - timedelta(days=MEMORY_DAYS)
    return frozenset(name for name, last in last_days.items() if last >= oldest)


def reasons_against(
    facts: OwnerFacts | None,
    question: Question,
    *,
    version_pin: tuple[str, ...],
    trusted_producers: frozenset[str],
) -> tuple[Reason, ...]:
    """Return every reason why the owner may not get more than shadow; empty when eligible."""
    reasons: list[Reason] = []
    if not question.names_environment:
        reasons.append(Reason.ENVIRONMENT_ATTRIBUTE_MISSING)
    if question.route is not Route.INTERACTIVE_FOREGROUND:
        reasons.append(Reason.ROUTE_EXCLUDED)
    if facts is None or facts.ownership is None:
        reasons.append(Reason.UNKNOWN_OWNER)
    elif facts.ownership is not Ownership.KNOWN:
        reasons.append(Reason.OWNERSHIP_UNKNOWN)
    if facts is not None and facts.ownership is not None:
        producers = recent(facts.producers, question.today)
        if not facts.is_trusted or producers - trusted_producers:
            reasons.append(Reason.PRODUCER_UNTRUSTED)
    if question.version is None:
        reasons.append(Reason.VERSION_UNKNOWN)
    elif question.version not in version_pin:
        reasons.append(Reason.VERSION_NOT_PINNED)
    if facts is not None and recent(facts.versions, question.today) - set(version_pin):
        reasons.append(Reason.MIXED_VERSIONS)
    return tuple(reasons)


def is_stable(facts: OwnerFacts, complete_days: tuple[date, ...]) -> bool:
    """Whether the owner had prompts on at least 3 of the last 7 complete days.

    `complete_days` are in rising order. An enforce roster holds stable owners only.
    """
    return len(facts.prompt_days & set(complete_days[-MEMORY_DAYS:])) >= STABLE_DAYS


def lowered_mode(phase: Mode, route: Route | None) -> Mode:
    """Return the mode of an ineligible owner: off outside the foreground, else shadow at most."""
    if route is not None and route is not Route.INTERACTIVE_FOREGROUND:
        return Mode.OFF
    return Mode.SHADOW.at_most(phase)


SENTENCES: Mapping[Reason, str] = {
    Reason.ROLLOUT_LATCHED: "A violated invariant returned this environment to shadow; a person "
    "must acknowledge it first.",
    Reason.SNAPSHOT_STALE: "This server has not heard from its store for more than 2 seconds.",
    Reason.ENVIRONMENT_ATTRIBUTE_MISSING: "The request names no environment; set "
    "deployment.environment.name.",
    Reason.ROUTE_EXCLUDED: "Only prompts from the interactive foreground may get more than shadow.",
    Reason.UNKNOWN_OWNER: "Nothing is known about this owner; state its facts with PUT "
    "/owners/{owner}.",
    Reason.OWNERSHIP_UNKNOWN: "The owner's facts say that its ownership is unknown.",
    Reason.PRODUCER_UNTRUSTED: "The owner, or a producer that sent its records in the last 7 days, "
    "is not trusted.",
    Reason.VERSION_UNKNOWN: "The request does not name its service.version.",
    Reason.VERSION_NOT_PINNED: "The service.version of the request is not pinned by this wave.",
    Reason.MIXED_VERSIONS: "Within the last 7 days the owner was also seen with a version that is "
    "not pinned.",
    Reason.NOT_IN_ROSTER: "The owner is eligible but joined after the wave's roster was frozen; it "
    "gets the reference cohort's mode and may be drawn in the next wave.",
}
