"""Which mode an owner has now, and why: answered from memory, without the store."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from hashlib import blake2b

import orjson

from control_plane.access import Identity, may
from control_plane.data_plane import DataPlane
from control_plane.data_plane.snapshot import EnvironmentSnapshot, RolloutSnapshot
from control_plane.errors import Forbidden, NotFound, NotSignedIn, trace_of
from control_plane.queries.answer_memory import Grounds, KeptAnswer
from control_plane.queries.assignment_questions import (
    AssignmentRequest,
    check_owner_in_path,
    day_of,
    parameters,
)
from control_plane.queries.assignment_views import (
    AssignmentView,
    ReasonView,
    sentence_of,
    unexplained,
)
from reducer.rollout.allotment import Allotment, Place, allot
from reducer.rollout.assignment import Assignment, issue
from reducer.rollout.eligibility import SENTENCES, OwnerFacts, Question, lowered_mode
from reducer.rollout.pseudonym import pseudonym_of
from reducer.vocabulary import Mode, Reason, Role

_REASONS: Mapping[Reason, ReasonView] = {
    reason: ReasonView(reason, sentence) for reason, sentence in SENTENCES.items()
}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AssignmentAnswer:
    """The answer as JSON. `is_unchanged`: the asker holds it already, and 304 says so."""

    body: bytes
    etag: str
    is_unchanged: bool


def answer_assignment(plane: DataPlane, asked: AssignmentRequest) -> AssignmentAnswer:
    """Answer which mode the owner has now. A fault of ours answers shadow.

    Raises:
        NotSignedIn, Forbidden: the token is not good, or not for this.
        InvalidField: the owner id or a query parameter cannot be used.
        NotFound: there is no such environment or rollout, and the store was read to know it.
        StoreUnavailable: the token was never seen here and the store is away.
    """
    plane.refresher.ensure_running()
    snapshot = plane.refresher.snapshot
    trouble = snapshot.trouble_with(asked.environment, plane.refresher.now())
    held = snapshot.environments.get(asked.environment)
    today = day_of(plane.clock.now_ns())
    key = plane.answers.key_of(asked)
    answer = plane.answers.find(key) if trouble is None else None
    grounds = None if answer is None else answer.grounds
    if answer is None or not (grounds and grounds.hold(held, plane.credentials.reading, today)):
        answer = _decide(plane, asked, held, trouble=trouble, today=today)
        if answer.grounds is not None:
            plane.answers.keep(key, answer)
    is_unchanged = answer.etag in (asked.if_none_match or "")
    return AssignmentAnswer(answer.body, answer.etag, is_unchanged)


def check_caller(plane: DataPlane, authorization: str | None, environment: str) -> Identity:
    """Return who asks: a runtime token, or one that may read the environment.

    Raises:
        NotSignedIn, Forbidden, StoreUnavailable: as `answer_assignment`.
    """
    found = plane.credentials.bearer(authorization)
    if found is None:
        raise NotSignedIn(
            "send a token that is known and not revoked: Authorization: Bearer gw_<id>_<secret>"
        )
    if not (may(found, Role.RUNTIME, environment) or may(found, Role.VIEWER, environment)):
        raise Forbidden(
            f"the token {found.token_id} is {found.role} of "
            f"{found.environment or 'every environment'}; this needs runtime of this environment"
        )
    return found


def _decide(
    plane: DataPlane,
    asked: AssignmentRequest,
    held: EnvironmentSnapshot | None,
    *,
    trouble: str | None,
    today: date,
) -> KeptAnswer:
    credentials = plane.credentials.reading
    check_caller(plane, asked.authorization, asked.environment)
    check_owner_in_path(asked.owner)
    version, route = parameters(asked.query)
    rollout = None if held is None else held.rollouts.get(asked.guard)
    if held is None or rollout is None:
        return _encoded(_unknown(asked, held, trouble))
    question = Question(version, route, today)
    try:
        pseudonym = pseudonym_of(held.pseudonym_key, asked.owner)
        facts = held.owners.facts_of(pseudonym)
        view = _view(held, rollout, question, pseudonym=pseudonym, facts=facts, trouble=trouble)
        grounds = Grounds(held, credentials, pseudonym, facts, today) if trouble is None else None
        return _encoded(view, grounds)
    except Exception as error:  # noqa: BLE001  # a prompt is about to start: shadow, not a 500
        _log.error("an assignment failed: %s", trace_of(error))
        failed = "the server failed to decide"
        return _encoded(unexplained(asked.environment, asked.guard, (), failed))


def _encoded(view: AssignmentView, grounds: Grounds | None = None) -> KeptAnswer:
    body = orjson.dumps(view)
    return KeptAnswer(body, f'"{blake2b(body, digest_size=12).hexdigest()}"', grounds)


def _unknown(
    asked: AssignmentRequest, held: EnvironmentSnapshot | None, trouble: str | None
) -> AssignmentView:
    """Answer for what was never read: not found only when the store says that it does not exist."""
    if trouble is not None:
        stale = (_REASONS[Reason.SNAPSHOT_STALE],)
        return unexplained(asked.environment, asked.guard, stale, trouble)
    if held is None:
        raise NotFound(f"there is no environment {asked.environment[:64]!r}")
    if asked.guard not in held.environment.guards:
        raise NotFound(
            f"guard {asked.guard[:64]!r} has no rollout in environment {asked.environment!r}"
        )
    return unexplained(
        asked.environment, asked.guard, (), "the stored rollout cannot be read by this server"
    )


def _view(
    held: EnvironmentSnapshot,
    rollout: RolloutSnapshot,
    question: Question,
    *,
    pseudonym: str,
    facts: OwnerFacts | None,
    trouble: str | None,
) -> AssignmentView:
    place = rollout.place_of(pseudonym)
    allotted = allot(
        rollout.rollout,
        facts,
        question,
        place=place,
        trusted_producers=held.trusted_producers,
        is_latched=held.environment.latch is not None,
    )
    if trouble is not None:
        mode = lowered_mode(rollout.rollout.phase, question.route)
        allotted = _lowered(allotted, mode, trouble, reason=Reason.SNAPSHOT_STALE)
    if rollout.fault is not None:
        mode = lowered_mode(rollout.rollout.phase, question.route)
        allotted = _lowered(allotted, mode, rollout.fault)
    return _explained(held, rollout, allotted, pseudonym=pseudonym, place=place)


def _lowered(
    allotted: Allotment, mode: Mode, diagnostic: str, *, reason: Reason | None = None
) -> Allotment:
    """Return the allotment with a lower mode; the owner stays in its wave and cohort."""
    added = allotted.reasons if reason is None else (reason, *allotted.reasons)
    return Allotment(
        mode=mode,
        cohort=allotted.cohort,
        wave=allotted.wave,
        reasons=tuple(sorted(added, key=_IMPORTANCE.__getitem__)),
        diagnostic=diagnostic,
    )


_IMPORTANCE = {reason: at for at, reason in enumerate(Reason)}


def _explained(
    held: EnvironmentSnapshot,
    snapshot: RolloutSnapshot,
    allotted: Allotment,
    *,
    pseudonym: str,
    place: Place | None,
) -> AssignmentView:
    rollout, wave = snapshot.rollout, snapshot.wave
    # Without its roster a rollout cannot say who is in which cohort, and an id would prove one.
    assignment_id = None
    if snapshot.fault is None:
        said = Assignment(
            rollout.guard,
            pseudonym,
            allotted.wave,
            allotted.cohort,
            allotted.mode,
            rollout.generation,
        )
        assignment_id = issue(held.tag_key, rollout.environment, said)
    return AssignmentView(
        environment=rollout.environment,
        guard=rollout.guard,
        mode=allotted.mode,
        cohort=allotted.cohort,
        wave=allotted.wave,
        generation=rollout.generation,
        reasons=tuple(_REASONS[reason] for reason in allotted.reasons),
        sentence=sentence_of(rollout, allotted, place),
        rank=None if place is None else place.rank,
        roster_size=None if place is None else place.size,
        treated=None if place is None else place.treated,
        roster_digest=None if wave is None else wave.roster_digest,
        algorithm=None if wave is None else wave.algorithm,
        ceiling_bps=rollout.ceiling_bps,
        assignment_id=assignment_id,
        diagnostic=allotted.diagnostic,
    )
