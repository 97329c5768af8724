"""Owners: stating facts of one or many, and reading one; their ids are never stored."""

from datetime import date

from flask import Response

from guardwave.control_plane.commands.owners import OwnerStatement, state_owners
from guardwave.control_plane.core.etags import environment_etag
from guardwave.control_plane.http.middleware import idempotent, requests
from guardwave.control_plane.http.schema import (
    WRITE_ERRORS,
    Answer,
    EnvironmentPath,
    IfMatch,
    MaybeKeyed,
    OwnerFactsBody,
    OwnerPath,
    OwnerStatementsBody,
    environment_address,
    resource,
    respond,
)
from guardwave.control_plane.queries.owners import (
    OwnerAllotment,
    OwnerEvidence,
    OwnerView,
    owner_view,
)
from guardwave.control_plane.rollouts.loading import load_environment
from guardwave.reducer.rollout.eligibility import SENTENCES, OwnerFacts, Ownership
from guardwave.reducer.vocabulary import Cohort, Mode, Reason, Role

blueprint = resource("owners", "Units of assignment and of analysis, by pseudonym.")


class FactsStated(Answer):
    """How many owners were named, and how many of them changed by it."""

    received: int
    owners_changed: int
    links: dict[str, str]


class SeenAnswer(Answer):
    """A version or producer, and the last UTC day on which a record showed it."""

    name: str
    last_seen: date


class ProducerAnswer(SeenAnswer):
    """A producer, by its credential's id."""

    trusted: bool


class FactsAnswer(Answer):
    """What was stated (`ownership`, `trusted`) and what records showed."""

    ownership: Ownership | None
    trusted: bool
    versions: list[SeenAnswer]
    producers: list[ProducerAnswer]
    prompt_days: list[date]


class ReasonAnswer(Answer):
    """Why the mode is no higher."""

    code: Reason
    sentence: str


class AllotmentAnswer(Answer):
    """What one guard gives the owner. Rank and size are null off the roster."""

    guard: str
    mode: Mode
    cohort: Cohort
    wave: int
    version: str | None
    rank: int | None
    roster_size: int | None
    reasons: list[ReasonAnswer]
    sentence: str


class EvidenceAnswer(Answer):
    """What the owner's prompts under one guard and wave added up to."""

    guard: str
    wave: int
    started: int
    completed: int
    cancelled: int
    disrupted: int
    tokens: int
    turns: int


class OwnerAnswer(Answer):
    """One owner. `facts` is null when nothing is known of it."""

    pseudonym: str
    facts: FactsAnswer | None
    guards: list[AllotmentAnswer]
    evidence: list[EvidenceAnswer]
    evidence_from: date
    evidence_to: date
    links: dict[str, str]


@blueprint.get("/environments/<environment>/owners/<owner>", responses={200: OwnerAnswer})
def read_owner(path: OwnerPath) -> Response:
    """Read one owner: facts, what each guard gives it and why, evidence of the last 14 days."""
    requests.require(Role.VIEWER, path.environment)
    found = owner_view(requests.context(), path.environment, path.owner)
    return respond(_answer(path.environment, found))


@blueprint.put(
    "/environments/<environment>/owners/<owner>", responses={200: FactsStated, **WRITE_ERRORS}
)
def put_owner(path: OwnerPath, header: IfMatch, body: OwnerFactsBody) -> Response:
    """State the facts of one owner."""
    statement = OwnerStatement(path.owner, body.ownership, body.trusted)
    return _state(path.environment, (statement,), reason=body.reason, if_match=header.if_match)


@blueprint.post("/environments/<environment>/owners", responses={200: FactsStated, **WRITE_ERRORS})
@idempotent
def post_owners(path: EnvironmentPath, header: MaybeKeyed, body: OwnerStatementsBody) -> Response:
    """State the facts of up to 1,000 owners at once, all of them or none."""
    statements = tuple(
        OwnerStatement(owner.owner, owner.ownership, owner.trusted) for owner in body.owners
    )
    return _state(path.environment, statements, reason=body.reason, if_match=header.if_match)


def _state(
    environment: str,
    statements: tuple[OwnerStatement, ...],
    *,
    reason: str | None,
    if_match: str | None,
) -> Response:
    actor = requests.require(Role.OPERATOR, environment)
    context = requests.context()
    held = load_environment(context, environment)
    requests.honour_if_match(if_match, environment_etag(held))
    changed = state_owners(context, environment, statements, actor=actor, reason=reason or "")
    return respond(
        FactsStated(
            received=len(statements),
            owners_changed=changed,
            links={"environment": environment_address(environment)},
        )
    )


def _answer(environment: str, owner: OwnerView) -> OwnerAnswer:
    return OwnerAnswer(
        pseudonym=owner.pseudonym,
        facts=None if owner.facts is None else _facts(owner.facts, owner.trusted_producers),
        guards=[_allotment(allotment) for allotment in owner.allotments],
        evidence=[_evidence(evidence) for evidence in owner.evidence],
        evidence_from=owner.first_day,
        evidence_to=owner.last_day,
        links={"environment": environment_address(environment)},
    )


def _facts(facts: OwnerFacts, trusted: frozenset[str]) -> FactsAnswer:
    return FactsAnswer(
        ownership=facts.ownership,
        trusted=facts.is_trusted,
        versions=[
            SeenAnswer(name=name, last_seen=day) for name, day in sorted(facts.versions.items())
        ],
        producers=[
            ProducerAnswer(name=name, last_seen=day, trusted=name in trusted)
            for name, day in sorted(facts.producers.items())
        ],
        prompt_days=sorted(facts.prompt_days),
    )


def _allotment(owner: OwnerAllotment) -> AllotmentAnswer:
    allotment, place = owner.allotment, owner.place
    return AllotmentAnswer(
        guard=owner.guard,
        mode=allotment.mode,
        cohort=allotment.cohort,
        wave=allotment.wave,
        version=owner.version,
        rank=None if place is None else place.rank,
        roster_size=None if place is None else place.size,
        reasons=[
            ReasonAnswer(code=reason, sentence=SENTENCES[reason]) for reason in allotment.reasons
        ],
        sentence=owner.sentence,
    )


def _evidence(evidence: OwnerEvidence) -> EvidenceAnswer:
    sums = evidence.sums
    return EvidenceAnswer(
        guard=evidence.guard,
        wave=evidence.wave,
        started=sums.started,
        completed=sums.completed,
        cancelled=sums.cancelled,
        disrupted=sums.disrupted,
        tokens=sums.tokens,
        turns=sums.turns,
    )
