"""Which producers of an environment are trusted."""

from control_plane.context import Context
from control_plane.stores.credentials import Token
from reducer.vocabulary import Role


def trusted_among(tokens: tuple[Token, ...], environment: str) -> frozenset[str]:
    """Return the ids of the trusted ingest tokens of an environment. A revoked one keeps its trust.

    What it sent while it was good stays good; it can send nothing more.
    """
    return frozenset(
        token.id
        for token in tokens
        if token.role is Role.INGEST and token.is_trusted and token.environment == environment
    )


def trusted_producers(context: Context, environment: str) -> frozenset[str]:
    """Return the ids of the environment's trusted producers, read from the store."""
    return trusted_among(context.credentials.tokens(), environment)
