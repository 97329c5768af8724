"""Tokens: listing, making and revoking them, for admins."""

from datetime import datetime

from flask import Response, request

from guardwave.control_plane.core.errors import BadRequest, RuleViolated
from guardwave.control_plane.http.middleware import HEADER, requests
from guardwave.control_plane.http.schema import (
    PREFIX,
    WRITE_ERRORS,
    Answer,
    NewToken,
    Page,
    PageQuery,
    TokenPath,
    answers,
    resource,
    respond,
    slice_after,
)
from guardwave.control_plane.queries.tokens import TokenView, token_view, token_views
from guardwave.control_plane.rollouts.access import create_token, parse_token, revoke_token
from guardwave.reducer.vocabulary import Role

blueprint = resource("tokens", "Credentials of programs and people.")


class TokenAnswer(Answer):
    """One credential, without its secret."""

    id: str
    name: str
    role: Role
    environment: str | None
    trusted: bool
    created_at: datetime
    revoked: bool
    links: dict[str, str]


class TokenMade(TokenAnswer):
    """A new credential; `token` is its text, shown this once."""

    token: str


@blueprint.get("/tokens", responses={200: Page[TokenAnswer]})
def list_tokens(query: PageQuery) -> Response:
    """List all tokens, revoked ones too, oldest first."""
    requests.require(Role.ADMIN, None)
    found = token_views(requests.context())
    shown, following = slice_after(
        found, lambda token: token.id, after=query.cursor, limit=query.limit
    )
    return respond(answers.page([_answer(token) for token in shown], following))


@blueprint.get("/tokens/<id>", responses={200: TokenAnswer})
def read_token(path: TokenPath) -> Response:
    """Read one token."""
    requests.require(Role.ADMIN, None)
    return respond(_answer(token_view(requests.context(), path.id)))


@blueprint.post("/tokens", responses={201: TokenMade, **WRITE_ERRORS})
def post_token(body: NewToken) -> Response:
    """Make a token. Its text is in this answer and nowhere else, so no key can repeat it."""
    actor = requests.require(Role.ADMIN, None)
    _reject_headers("If-Match", HEADER)
    context = requests.context()
    if body.environment is not None and context.environments.load(body.environment) is None:
        raise RuleViolated(f"there is no environment {body.environment}; create it first")
    text = create_token(
        context,
        role=body.role,
        environment=body.environment,
        is_trusted=body.trusted,
        name=body.name,
        actor=actor,
    )
    parts = parse_token(text)
    assert parts is not None  # `create_token` made it
    made = _answer(token_view(context, parts[0]))
    return respond(TokenMade(**dict(made), token=text), status=201, location=made.links["self"])


@blueprint.delete("/tokens/<id>", responses={200: TokenAnswer, **WRITE_ERRORS})
def delete_token(path: TokenPath) -> Response:
    """Revoke a token; every worker refuses it within a second. Repeating it changes nothing."""
    actor = requests.require(Role.ADMIN, None)
    _reject_headers("If-Match")
    revoke_token(requests.context(), path.id, actor=actor)
    return respond(_answer(token_view(requests.context(), path.id)))


def _reject_headers(*names: str) -> None:
    """Reject headers that would be in vain: tokens have no ETag, and no answer is kept."""
    for name in names:
        if name in request.headers:
            raise BadRequest(f"{name} has no meaning for tokens; leave it out")


def _answer(token: TokenView) -> TokenAnswer:
    return TokenAnswer(
        id=token.id,
        name=token.name,
        role=token.role,
        environment=token.environment,
        trusted=token.is_trusted,
        created_at=token.created_at,
        revoked=token.is_revoked,
        links={"self": f"{PREFIX}/tokens/{token.id}"},
    )
