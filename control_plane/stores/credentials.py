"""Credentials: tokens (only their hashes are stored), sign-in codes and browser sessions."""

import secrets
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from redis import Redis

from guardwave.control_plane.stores.codec import decode, encode
from guardwave.control_plane.stores.keys import (
    SESSION_KEY,
    TOKENS,
    TOKENS_REVISION,
    session,
    sign_in_code,
)
from guardwave.control_plane.stores.server import reply_bytes, reply_text, translate_store_errors
from guardwave.reducer.vocabulary import Role

CODE_TTL_S = 900
SESSION_TTL_S = 12 * 3600


@dataclass(frozen=True, slots=True)
class Token:
    """A credential. `secret_hash` is the SHA-256 of 256 random bits, so no slow hash is needed."""

    id: str
    name: str
    role: Role
    environment: str | None
    is_trusted: bool
    created_at: datetime
    secret_hash: str
    is_revoked: bool = False


def hash_secret(secret: str) -> str:
    """Return the stored form of a secret: its SHA-256, hexadecimal."""
    return sha256(secret.encode()).hexdigest()


class CredentialStore:
    """All tokens. Every change raises one revision that the web workers poll."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @translate_store_errors()
    def save(self, token: Token) -> None:
        """Keep a token, new or changed."""
        pipe = self._redis.pipeline(transaction=True)
        pipe.hset(TOKENS, token.id, encode(token))
        pipe.incr(TOKENS_REVISION)
        pipe.execute()

    @translate_store_errors()
    def token(self, token_id: str) -> Token | None:
        """Return one token; None when there is none with this id."""
        stored = self._redis.hget(TOKENS, token_id)
        return None if stored is None else decode(Token, stored)

    @translate_store_errors()
    def tokens(self) -> tuple[Token, ...]:
        """Return all tokens, revoked ones too, oldest first."""
        found = (decode(Token, stored) for stored in self._redis.hvals(TOKENS))
        return tuple(sorted(found, key=_age))

    @translate_store_errors()
    def save_code(self, code: str, token_id: str) -> None:
        """Keep a one-time sign-in code for 15 minutes."""
        self._redis.set(sign_in_code(hash_secret(code)), token_id, ex=CODE_TTL_S)

    @translate_store_errors()
    def take_code(self, code: str) -> str | None:
        """Return the token id of a code and delete the code; None when it was used or is old."""
        stored = self._redis.getdel(sign_in_code(hash_secret(code)))
        return None if stored is None else reply_text(stored)

    @translate_store_errors()
    def save_session(self, secret: str, token_id: str) -> None:
        """Keep a browser session for 12 hours, by the digest of its cookie's secret."""
        self._redis.set(session(hash_secret(secret)), token_id, ex=SESSION_TTL_S)

    @translate_store_errors()
    def session(self, secret: str) -> str | None:
        """Return the token id of a session; None when it ended."""
        stored = self._redis.get(session(hash_secret(secret)))
        return None if stored is None else reply_text(stored)

    @translate_store_errors()
    def end_session(self, secret: str) -> None:
        """Delete a session."""
        self._redis.delete(session(hash_secret(secret)))

    @translate_store_errors()
    def session_key(self) -> bytes:
        """Return the key that signs session cookies, made once and shared by all web workers."""
        self._redis.set(SESSION_KEY, secrets.token_hex(32), nx=True)
        return reply_bytes(self._redis.get(SESSION_KEY))


def _age(token: Token) -> tuple[datetime, str]:
    return token.created_at, token.id
