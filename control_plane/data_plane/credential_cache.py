"""Credential cache: the identity behind a bearer token; only a new token reads the store."""

from guardwave.control_plane.rollouts.access import Identity, parse_token, verify_secret
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.credentials import Token

_MOST_UNKNOWN = 1024


class CredentialCache:
    """All tokens, as last read. While the store is away, known tokens keep working."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._tokens: dict[str, Token] = {}
        self._unknown: set[str] = set()

    @property
    def current_tokens(self) -> object:
        """An object that stands for all tokens; after any change it is another object."""
        return self._tokens

    def replace(self, tokens: tuple[Token, ...]) -> None:
        """Replace all tokens; the refresher calls it when any of them changed."""
        self._tokens = {token.id: token for token in tokens}
        self._unknown = set()

    def identity(self, text: str) -> Identity | None:
        """Return the identity of a token; None when it is unknown, wrong or revoked.

        A token made since the last refresh is looked up in the store, so it works at once.

        Raises:
            StoreUnavailable: the token is not known here and the store is away.
        """
        parts = parse_token(text.strip())
        if parts is None:
            return None
        token_id, secret = parts
        token = self._tokens.get(token_id)
        if token is None:
            token = self._look_up(token_id)
        return verify_secret(token, secret)

    def bearer(self, authorization: str | None) -> Identity | None:
        """Return the identity in an `Authorization: Bearer` header (RFC 6750, 2.1); None as above.

        Raises:
            StoreUnavailable: as `identity`.
        """
        scheme, _, text = (authorization or "").partition(" ")
        return self.identity(text) if scheme.lower() == "bearer" else None

    def _look_up(self, token_id: str) -> Token | None:
        """Read one token and do not keep it: only the refresher never misses a revocation."""
        if token_id in self._unknown:
            return None
        token = self._context.credentials.token(token_id)
        # Bounded, and emptied at the next change: guessed ids do not reach the store twice.
        if token is None and len(self._unknown) < _MOST_UNKNOWN:
            self._unknown.add(token_id)
        return token
