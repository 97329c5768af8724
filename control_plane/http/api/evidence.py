"""Evidence: owner-days as NDJSON, a line for each owner and day, streamed in pages."""

from urllib.parse import urlencode

from flask import Response, request

from guardwave.control_plane.http.api.rollouts import RULE
from guardwave.control_plane.http.middleware import NDJSON, requests
from guardwave.control_plane.http.schema import EvidenceQuery, RolloutPath, problems, resource
from guardwave.control_plane.queries.evidence import DayRange, OwnerDayQuery, evidence_page
from guardwave.reducer.vocabulary import Role

blueprint = resource("evidence", "What owners' prompts added up to, by day and treatment.")

_COUNT = {"type": "integer", "minimum": 0}
_COUNTS = (
    "started cancelled completed failed guard_stopped limit lost disrupted tokens turns "
    "would_stopped stopped calls_after_would_stop unreliable covered ended switched "
    "tokens_untold turns_untold"
)
_LINE = {
    "type": "object",
    "description": "One line of the answer; an answer without owner-days is empty.",
    "properties": {
        "guard": {"type": "string"},
        "wave": _COUNT,
        "mode": {"type": "string"},
        "owner": {"type": "string", "description": "The pseudonym."},
        "day": {"type": "string", "format": "date"},
        "cohort": {"type": "string"},
        "version": {"type": "string"},
        **dict.fromkeys(_COUNTS.split(), _COUNT),
        "scale": {"type": "integer", "description": "Of the buckets: ratio 2^(2^-scale)."},
        "durations": {
            "type": "array",
            "description": "Pairs of bucket and count: ms by events, s by counters.",
            "items": {"type": "array", "items": {"type": "integer"}},
        },
        "source": {"type": "string", "enum": ["events", "counters"]},
    },
}
_PAGE = {
    "description": "Owner-days, one a line, by day and owner.",
    "content": {NDJSON: {"schema": _LINE}},
    "headers": {
        "Link": {
            "description": 'The next page, rel="next" (RFC 8288); absent at the end.',
            "schema": {"type": "string"},
        }
    },
}


@blueprint.get(f"{RULE}/evidence", responses={200: _PAGE, **problems(422)})
def read_evidence(path: RolloutPath, query: EvidenceQuery) -> Response:
    """Read the rollout's owner-days as NDJSON; the header Link leads to the next page."""
    requests.require(Role.VIEWER, path.environment)
    question = OwnerDayQuery(
        DayRange(query.first, query.last), query.wave, query.cohort, query.cursor, query.limit
    )
    page = evidence_page(requests.context(), path.environment, path.guard, question)
    response = Response(page.lines, mimetype=NDJSON)
    if page.following is not None:
        kept = {name: text for name, text in request.args.items() if name != "cursor"}
        address = f"{request.path}?{urlencode({**kept, 'cursor': page.following})}"
        response.headers["Link"] = f'<{address}>; rel="next"'
    return response
