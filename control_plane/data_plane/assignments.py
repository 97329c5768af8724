"""Assignments: the mode that an owner has now, and why, answered without the store."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from hashlib import blake2b

import orjson

from guardwave.control_plane.core.errors import Forbidden, NotFound, NotSignedIn, trace_of
from guardwave.control_plane.data_plane import DataPlane
from guardwave.control_plane.data_plane.answer_cache import AnswerBasis, CachedAnswer
from guardwave.control_plane.data_plane.assignment_request import (
    AssignmentRequest,
    check_owner_in_path,
    day_of,
    parse_query,
)
from guardwave.control_plane.data_plane.snapshot import EnvironmentSnapshot, RolloutSnapshot
from guardwave.control_plane.rollouts.access import Identity, is_permitted
from guardwave.reducer.rollout.allotment import Allotment, Place, allot
from guardwave.reducer.rollout.assignment import Assignment, issue
from guardwave.reducer.rollout.eligibility import SENTENCES, OwnerFacts, Question, lowered_mode
from guardwave.reducer.rollout.pseudonym import pseudonym_of
from guardwave.reducer.rollout.state import Rollout
from guardwave.reducer.vocabulary import Cohort, Mode, Reason, Role

# How long a host that cannot ask again may keep an answer; then it falls to shadow.
TTL_S = 30
_log = logging.getLogger(__name__)


# The docstrings of these two are part of the OpenAPI document.
@dataclass(frozen=True, slots=True)
class ReasonView:
    """Why the mode is no higher: a stable code, and what it means."""

    code: Reason
    sentence: str


@dataclass(frozen=True, slots=True)
class AssignmentView:
    """The answer. Rank, size and treated are null for an owner that is not on a roster.

    `generation` and `assignment_id` are null when this server cannot vouch for one: telemetry is
    then sent without an id, and counts as volume.
    """

    environment: str
    guard: str
    mode: Mode
    cohort: Cohort
    wave: int
    generation: int | None
    reasons: tuple[ReasonView, ...]
    sentence: str
    rank: int | None = None
    roster_size: int | None = None
    treated: int | None = None
    roster_digest: str | None = None
    algorithm: str | None = None
    ceiling_bps: int | None = None
    assignment_id: str | None = None
    diagnostic: str | None = None
    ttl_s: int = TTL_S


@dataclass(frozen=True, slots=True)
class AssignmentAnswer:
    """The answer as JSON. With `is_unchanged` the host has it already, and gets status 304."""

    body: bytes
    etag: str
    is_unchanged: bool


def answer_assignment(plane: DataPlane, request: AssignmentRequest) -> AssignmentAnswer:
    """Return the mode that the owner has now. A fault of this server answers shadow.

    Raises:
        NotSignedIn, Forbidden: the token is not valid, or not for this environment.
        InvalidField: the owner id or a query parameter cannot be used.
        NotFound: according to the store there is no such environment or rollout.
        StoreUnavailable: the token is unknown here and the store is away.
    """
    plane.refresher.ensure_running()
    snapshot = plane.refresher.snapshot
    trouble = snapshot.trouble_with(request.environment, plane.refresher.now())
    environment = snapshot.environments.get(request.environment)
    today = day_of(plane.clock.now_ns())
    key = plane.answers.key_of(request)
    # While there is trouble every answer is decided anew, and none is kept.
    answer = plane.answers.find(key) if trouble is None else None
    basis = None if answer is None else answer.basis
    tokens = plane.credentials.current_tokens
    if answer is None or basis is None or not basis.is_current(environment, tokens, today):
        answer = _decide(plane, request, environment, trouble=trouble, today=today)
        if answer.basis is not None:
            plane.answers.keep(key, answer)
    is_unchanged = answer.etag in (request.if_none_match or "")
    return AssignmentAnswer(answer.body, answer.etag, is_unchanged)


def check_caller(plane: DataPlane, authorization: str | None, environment: str) -> Identity:
    """Return the caller: a runtime token, or one that may read the environment.

    Raises:
        NotSignedIn, Forbidden, StoreUnavailable: as `answer_assignment`.
    """
    caller = plane.credentials.bearer(authorization)
    if caller is None:
        raise NotSignedIn(
            "send a token that is known and not revoked: Authorization: Bearer gw_<id>_<secret>"
        )
    if not (
        is_permitted(caller, Role.RUNTIME, environment)
        or is_permitted(caller, Role.VIEWER, environment)
    ):
        raise Forbidden(
            f"the token {caller.token_id} is {caller.role} of "
            f"{caller.environment or 'every environment'}; this needs runtime of this environment"
        )
    return caller


def _decide(
    plane: DataPlane,
    request: AssignmentRequest,
    environment: EnvironmentSnapshot | None,
    *,
    trouble: str | None,
    today: date,
) -> CachedAnswer:
    # Read before the check, so that tokens which change in between outdate this answer's basis.
    tokens = plane.credentials.current_tokens
    check_caller(plane, request.authorization, request.environment)
    check_owner_in_path(request.owner)
    version, route = parse_query(request.query)
    rollout = None if environment is None else environment.rollouts.get(request.guard)
    if environment is None or rollout is None:
        return _encode(_view_without_rollout(request, environment, trouble))
    question = Question(version, route, today)
    try:
        pseudonym = pseudonym_of(environment.pseudonym_key, request.owner)
        facts = environment.owners.facts_of(pseudonym)
        view = _view(
            environment, rollout, question, pseudonym=pseudonym, facts=facts, trouble=trouble
        )
        if trouble is not None:
            return _encode(view)
        return _encode(view, AnswerBasis(environment, tokens, pseudonym, facts, today))
    except Exception as error:  # noqa: BLE001  # a prompt is about to start: shadow, not a 500
        _log.error("an assignment failed: %s", trace_of(error))
        diagnostic = "the server failed to decide"
        return _encode(_shadow_view(request.environment, request.guard, (), diagnostic))


def _encode(view: AssignmentView, basis: AnswerBasis | None = None) -> CachedAnswer:
    body = orjson.dumps(view)
    return CachedAnswer(body, f'"{blake2b(body, digest_size=12).hexdigest()}"', basis)


_REASONS: Mapping[Reason, ReasonView] = {
    reason: ReasonView(reason, sentence) for reason, sentence in SENTENCES.items()
}


def _view_without_rollout(
    request: AssignmentRequest, environment: EnvironmentSnapshot | None, trouble: str | None
) -> AssignmentView:
    """Return shadow for a rollout that was never read; not found only if the store was read."""
    if trouble is not None:
        stale = (_REASONS[Reason.SNAPSHOT_STALE],)
        return _shadow_view(request.environment, request.guard, stale, trouble)
    if environment is None:
        raise NotFound(f"there is no environment {request.environment[:64]!r}")
    if request.guard not in environment.environment.guards:
        raise NotFound(
            f"guard {request.guard[:64]!r} has no rollout in environment {request.environment!r}"
        )
    return _shadow_view(
        request.environment, request.guard, (), "the stored rollout cannot be read by this server"
    )


def _shadow_view(
    environment: str, guard: str, reasons: tuple[ReasonView, ...], diagnostic: str
) -> AssignmentView:
    """Return shadow for a rollout about which this server knows nothing reliable."""
    return AssignmentView(
        environment=environment,
        guard=guard,
        mode=Mode.SHADOW,
        cohort=Cohort.INELIGIBLE,
        wave=0,
        generation=None,
        reasons=reasons,
        sentence=f"Mode shadow: {diagnostic}.",
        diagnostic=diagnostic,
    )


def _view(
    environment: EnvironmentSnapshot,
    rollout: RolloutSnapshot,
    question: Question,
    *,
    pseudonym: str,
    facts: OwnerFacts | None,
    trouble: str | None,
) -> AssignmentView:
    place = rollout.place_of(pseudonym)
    allotment = allot(
        rollout.rollout,
        facts,
        question,
        place=place,
        trusted_producers=environment.trusted_producers,
        is_latched=environment.environment.latch is not None,
    )
    mode = lowered_mode(rollout.rollout.phase, question.route)
    if trouble is not None:
        allotment = _lower(allotment, mode, trouble, reason=Reason.SNAPSHOT_STALE)
    if rollout.fault is not None:
        allotment = _lower(allotment, mode, rollout.fault)
    return _explain(environment, rollout, allotment, pseudonym=pseudonym, place=place)


# A reason's importance is its place in the vocabulary.
_IMPORTANCE = {reason: place for place, reason in enumerate(Reason)}


def _lower(
    allotment: Allotment, mode: Mode, diagnostic: str, *, reason: Reason | None = None
) -> Allotment:
    """Return the allotment with a lower mode; the owner stays in its wave and cohort."""
    reasons = allotment.reasons if reason is None else (reason, *allotment.reasons)
    return Allotment(
        mode=mode,
        cohort=allotment.cohort,
        wave=allotment.wave,
        reasons=tuple(sorted(reasons, key=_IMPORTANCE.__getitem__)),
        diagnostic=diagnostic,
    )


def _explain(
    environment: EnvironmentSnapshot,
    snapshot: RolloutSnapshot,
    allotment: Allotment,
    *,
    pseudonym: str,
    place: Place | None,
) -> AssignmentView:
    rollout, wave = snapshot.rollout, snapshot.wave
    # An id proves a cohort; without its roster the rollout does not know the owner's cohort.
    assignment_id = None
    if snapshot.fault is None:
        assignment = Assignment(
            rollout.guard,
            pseudonym,
            allotment.wave,
            allotment.cohort,
            allotment.mode,
            rollout.generation,
        )
        assignment_id = issue(environment.tag_key, rollout.environment, assignment)
    return AssignmentView(
        environment=rollout.environment,
        guard=rollout.guard,
        mode=allotment.mode,
        cohort=allotment.cohort,
        wave=allotment.wave,
        generation=rollout.generation,
        reasons=tuple(_REASONS[reason] for reason in allotment.reasons),
        sentence=sentence_of(rollout, allotment, place),
        rank=None if place is None else place.rank,
        roster_size=None if place is None else place.size,
        treated=None if place is None else place.treated,
        roster_digest=None if wave is None else wave.roster_digest,
        algorithm=None if wave is None else wave.algorithm,
        ceiling_bps=rollout.ceiling_bps,
        assignment_id=assignment_id,
        diagnostic=allotment.diagnostic,
    )


def sentence_of(rollout: Rollout, allotment: Allotment, place: Place | None) -> str:
    """Return the answer in one sentence, for people."""
    mode = allotment.mode
    if allotment.diagnostic is not None:
        return f"Mode {mode}: {allotment.diagnostic}."
    if allotment.reasons:
        return f"Mode {mode}: {SENTENCES[allotment.reasons[0]]}"
    if place is None:
        return f"Mode {mode}: the rollout is in {rollout.phase}, where every owner gets the same."
    if rollout.wave == 0:
        return f"Mode {mode}: the wave was closed by lowering a mode; its owners get {mode}."
    if place.treated == 0:
        return (
            f"Mode {mode}: the roster of {place.size} owners is too small for its share, so nobody "
            "is treated."
        )
    return (
        f"Mode {mode}: cohort {allotment.cohort} of wave {allotment.wave}, rank {place.rank} of "
        f"{place.size}; the first {place.treated} are treated."
    )
