from datetime import UTC, datetime

import pytest

from guardwave.control_plane.stores.credentials import (
    CODE_TTL_S,
    CredentialStore,
    Token,
    hash_secret,
)
from guardwave.control_plane.stores.keys import TOKENS_REVISION, sign_in_code
from guardwave.reducer.vocabulary import Role

SECRET = "never-to-be-found-again-in-any-file-of-ours"
CODE = "a-code-that-is-good-for-fifteen-minutes"


@pytest.fixture
def credentials(any_store):
    return CredentialStore(any_store)


def a_token(token_id: str = "abc", **fields) -> Token:
    return Token(
        id=token_id,
        name="a collector",
        role=Role.INGEST,
        environment="internal",
        is_trusted=True,
        created_at=datetime(2026, 11, 29, tzinfo=UTC),
        secret_hash=hash_secret(SECRET),
        **fields,
    )


def test_no_secret_reaches_the_disk(any_server, any_store, credentials):
    credentials.save(a_token())
    credentials.save_code(CODE, "abc")
    any_store.save()
    files = [file for file in any_server.data_dir.rglob("*") if file.is_file()]
    written = b"".join(file.read_bytes() for file in files)
    assert hash_secret(SECRET).encode() in written
    assert SECRET.encode() not in written
    assert CODE.encode() not in written


def test_a_token_comes_back_as_it_was_saved(credentials):
    for token_id in ("abc", "def"):
        credentials.save(a_token(token_id))
    assert credentials.token("abc") == a_token()
    assert credentials.token("other") is None
    assert credentials.tokens() == (a_token("abc"), a_token("def"))


def test_every_change_moves_the_revision(any_store, credentials):
    revisions = []
    for token in (a_token(), a_token("def"), a_token(is_revoked=True)):
        credentials.save(token)
        revisions.append(int(any_store.get(TOKENS_REVISION)))
    assert revisions == sorted(set(revisions))


def test_a_code_signs_in_once_and_not_for_long(any_store, credentials):
    credentials.save_code(CODE, "abc")
    assert 0 < any_store.ttl(sign_in_code(hash_secret(CODE))) <= CODE_TTL_S
    assert credentials.take_code("another code") is None
    assert credentials.take_code(CODE) == "abc"
    assert credentials.take_code(CODE) is None


def test_all_workers_sign_cookies_with_one_key(any_store, credentials):
    key = credentials.session_key()
    assert len(key) >= 32
    assert CredentialStore(any_store).session_key() == key
