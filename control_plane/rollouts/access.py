"""Access: bearer tokens, their roles and environments, and sign-in."""

import hmac
import re
import secrets
from dataclasses import dataclass, replace

from guardwave.control_plane.core.errors import NotFound, RuleViolated
from guardwave.control_plane.core.state import Action, Actor, ActorKind
from guardwave.control_plane.rollouts.changes import Change, Note, change
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.credentials import Token, hash_secret
from guardwave.reducer.vocabulary import Role

_SHAPE = re.compile(r"gw_([a-z0-9]{12})_([A-Za-z0-9_-]{43})")
_ID_ALPHABET = "abcdefghijkmnopqrstuvwxyz23456789"

# The actor of token commands, which run beside the store and need no credential.
COMMAND_LINE = Actor("guardwave token", ActorKind.PERSON)

# The roles that each role includes; ingest and runtime are for machines.
_INCLUDES = {
    Role.INGEST: {Role.INGEST},
    Role.RUNTIME: {Role.RUNTIME},
    Role.VIEWER: {Role.VIEWER},
    Role.OPERATOR: {Role.OPERATOR, Role.VIEWER, Role.RUNTIME},
    Role.ADMIN: {Role.ADMIN, Role.OPERATOR, Role.VIEWER, Role.RUNTIME},
}


@dataclass(frozen=True, slots=True)
class Identity:
    """A verified credential. `environment` is None for an admin, who may use all environments."""

    token_id: str
    name: str
    role: Role
    environment: str | None
    is_trusted: bool = False


def actor_of(identity: Identity) -> Actor:
    """Return the actor that the audit names for this identity."""
    return Actor(f"{identity.name} ({identity.token_id})", ActorKind.PERSON)


def is_permitted(identity: Identity, needed: Role, environment: str | None) -> bool:
    """Whether the identity has the needed role in this environment (None: in any)."""
    if needed not in _INCLUDES[identity.role]:
        return False
    return identity.environment is None or environment in (None, identity.environment)


def create_token(
    context: Context,
    *,
    role: Role,
    environment: str | None,
    is_trusted: bool = False,
    name: str = "",
    actor: Actor = COMMAND_LINE,
) -> str:
    """Make a credential and return its text, which is shown this once.

    The audit entry of its environment, if it has one, is written first: an entry without a
    credential is harmless, a credential without an entry is not.

    Raises:
        RuleViolated: a role other than admin names no environment, or trust is asked for a
            role that sends no telemetry.
    """
    if role is not Role.ADMIN and environment is None:
        raise RuleViolated(f"a token of role {role} is for one environment; name it")
    if role is Role.ADMIN and environment is not None:
        raise RuleViolated("an admin token is for all environments; leave the environment out")
    if is_trusted and role is not Role.INGEST:
        raise RuleViolated(f"only an ingest token can be trusted, not one of role {role}")
    token_id = "".join(secrets.choice(_ID_ALPHABET) for _ in range(12))
    secret = secrets.token_urlsafe(32)
    token = Token(
        id=token_id,
        name=name or f"{role} token",
        role=role,
        environment=environment,
        is_trusted=is_trusted,
        created_at=context.clock.now(),
        secret_hash=hash_secret(secret),
    )
    _note(context, token, Action.TOKEN_CREATED, actor)
    context.credentials.save(token)
    return f"gw_{token_id}_{secret}"


def revoke_token(context: Context, token_id: str, *, actor: Actor = COMMAND_LINE) -> Token:
    """Revoke a credential; every web worker rejects it within a second.

    Revoking it again changes nothing and makes no audit entry.

    Raises:
        NotFound: no token has this id.
    """
    token = context.credentials.token(token_id)
    if token is None:
        raise NotFound(f"there is no token {token_id!r}; list them with `guardwave token list`")
    if token.is_revoked:
        return token
    revoked = replace(token, is_revoked=True)
    _note(context, token, Action.TOKEN_REVOKED, actor)
    context.credentials.save(revoked)
    return revoked


def _note(context: Context, token: Token, action: Action, actor: Actor) -> None:
    """Record a change of a token, without its secret, in the audit of its environment."""
    environment = token.environment
    if environment is None or context.environments.load(environment) is None:
        return
    trust = "trusted" if token.is_trusted else "not trusted"
    note = Note(actor, action, f"{token.role} {token.id}, {trust}", reason="")
    change(context, environment, lambda before: Change(before, (), note, None))


def parse_token(text: str) -> tuple[str, str] | None:
    """Return id and secret of a token's text, None when it does not have a token's shape."""
    found = _SHAPE.fullmatch(text)
    return None if found is None else (found[1], found[2])


def verify_secret(token: Token | None, secret: str) -> Identity | None:
    """Return the identity if the secret belongs to this token and it is not revoked."""
    if token is None or token.is_revoked:
        return None
    if not hmac.compare_digest(token.secret_hash, hash_secret(secret)):
        return None
    return _identity(token)


def sign_in(context: Context, text: str) -> Identity | None:
    """Return the identity of a token's text, read from the store; None when it is not valid."""
    parts = parse_token(text.strip())
    if parts is None:
        return None
    token_id, secret = parts
    return verify_secret(context.credentials.token(token_id), secret)


def sign_in_with_code(context: Context, code: str) -> Identity | None:
    """Return the identity of a one-time code and use the code up; None when it is not valid."""
    token_id = context.credentials.take_code(code)
    return None if token_id is None else identity_of(context, token_id)


def make_sign_in_code(context: Context, token_id: str) -> str:
    """Return a one-time code, valid for 15 minutes, that signs in as this token."""
    code = secrets.token_urlsafe(24)
    context.credentials.save_code(code, token_id)
    return code


def begin_session(context: Context, identity: Identity) -> str:
    """Begin a browser session, valid for 12 hours; return the value of its cookie."""
    secret = secrets.token_urlsafe(32)
    context.credentials.save_session(secret, identity.token_id)
    return secret


def identity_in_session(context: Context, secret: str) -> Identity | None:
    """Return the identity of a session; None when it ended or its token was revoked."""
    token_id = context.credentials.session(secret)
    return None if token_id is None else identity_of(context, token_id)


def end_session(context: Context, secret: str) -> None:
    """End a session for every holder of its cookie."""
    context.credentials.end_session(secret)


def identity_of(context: Context, token_id: str) -> Identity | None:
    """Return the identity of a session's token; None when it was revoked or is gone."""
    token = context.credentials.token(token_id)
    return None if token is None or token.is_revoked else _identity(token)


def _identity(token: Token) -> Identity:
    return Identity(token.id, token.name, token.role, token.environment, token.is_trusted)


def trusted_among(tokens: tuple[Token, ...], environment: str) -> frozenset[str]:
    """Return the ids of the trusted ingest tokens of an environment, revoked ones included.

    A revoked token sends nothing more, and what it sent before stays trusted.
    """
    return frozenset(
        token.id
        for token in tokens
        if token.role is Role.INGEST and token.is_trusted and token.environment == environment
    )


def trusted_producers(context: Context, environment: str) -> frozenset[str]:
    """Return the ids of the environment's trusted producers, read from the store."""
    return trusted_among(context.credentials.tokens(), environment)
