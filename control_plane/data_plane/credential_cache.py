"""Who a bearer token belongs to, from memory; the store is read only for a new token."""

from control_plane.access import Identity, matches, parse_token
from control_plane.context import Context
from control_plane.stores.credentials import Token

_MOST_UNKNOWN = 1024


class CredentialCache:
    """All tokens, as last read. While the store is away, those that are known keep working."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._tokens: dict[str, Token] = {}
        self._unknown: set[str] = set()

    @property
    def reading(self) -> object:
        """What stands for the present tokens: another object as soon as any of them changed."""
        return self._tokens

    def replace(self, tokens: tuple[Token, ...]) -> None:
        """Take over what the store holds now; the refresher calls it when anything changed."""
        self._tokens = {token.id: token for token in tokens}
        self._unknown = set()

    def identity(self, text: str) -> Identity | None:
        """Return who the token's text belongs to; None when it is unknown, wrong or revoked.

        A token that was made since the last reading is looked up in the store, so it works at once.

        Raises:
            StoreUnavailable: the token is not known here and the store is away.
        """
        parts = parse_token(text.strip())
        if parts is None:
            return None
        token_id, secret = parts
        token = self._tokens.get(token_id)
        if token is None:
            token = self._looked_up(token_id)
        return matches(token, secret)

    def bearer(self, authorization: str | None) -> Identity | None:
        """Return who an `Authorization: Bearer` header belongs to (RFC 6750, 2.1); None as above.

        Raises:
            StoreUnavailable: as `identity`.
        """
        scheme, _, text = (authorization or "").partition(" ")
        return self.identity(text) if scheme.lower() == "bearer" else None

    def _looked_up(self, token_id: str) -> Token | None:
        """Read one token and do not keep it: only the refresher never misses a revocation."""
        if token_id in self._unknown:
            return None
        token = self._context.credentials.token(token_id)
        # Bounded, and forgotten at the next change: guessing ids does not reach the store.
        if token is None and len(self._unknown) < _MOST_UNKNOWN:
            self._unknown.add(token_id)
        return token
