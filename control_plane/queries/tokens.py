"""Token views: the credentials of the control plane, without their secrets."""

from dataclasses import dataclass
from datetime import datetime

from guardwave.control_plane.core.errors import NotFound
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.credentials import Token
from guardwave.reducer.vocabulary import Role


@dataclass(frozen=True, slots=True)
class TokenView:
    """One credential. `environment` is None for an admin's: all environments."""

    id: str
    name: str
    role: Role
    environment: str | None
    is_trusted: bool
    created_at: datetime
    is_revoked: bool


def token_views(context: Context) -> tuple[TokenView, ...]:
    """Return all credentials, revoked ones too, oldest first."""
    return tuple(_view(token) for token in context.credentials.tokens())


def token_view(context: Context, token_id: str) -> TokenView:
    """Return one credential.

    Raises:
        NotFound: no token has this id.
    """
    found = context.credentials.token(token_id)
    if found is None:
        raise NotFound(f"there is no token {token_id!r}; GET /api/v1/tokens lists them")
    return _view(found)


def _view(token: Token) -> TokenView:
    return TokenView(
        id=token.id,
        name=token.name,
        role=token.role,
        environment=token.environment,
        is_trusted=token.is_trusted,
        created_at=token.created_at,
        is_revoked=token.is_revoked,
    )
