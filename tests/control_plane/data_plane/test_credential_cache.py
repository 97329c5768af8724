"""Credential cache: new tokens work at once, known ones without the store, revoked ones never."""

import pytest

from guardwave.control_plane.core.errors import StoreUnavailable
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.data_plane.credential_cache import CredentialCache
from guardwave.control_plane.data_plane.refresher import Refresher
from guardwave.control_plane.rollouts.access import create_token, revoke_token
from guardwave.control_plane.stores.server.clients import connect
from guardwave.reducer.vocabulary import Role
from tests.support.worlds import ENVIRONMENT, context_over


@pytest.fixture
def context(store):
    return context_over(store)


@pytest.fixture
def cache(context):
    return CredentialCache(context)


@pytest.fixture
def token(context):
    return create_token(context, role=Role.RUNTIME, environment=ENVIRONMENT)


def test_a_new_token_works_before_the_next_round(cache, token):
    found = cache.identity(token)
    assert (found.role, found.environment) == (Role.RUNTIME, ENVIRONMENT)


def test_a_token_is_good_in_a_bearer_header_only(cache, token):
    assert cache.bearer(f"bearer {token}") == cache.identity(token)
    assert cache.bearer(f"Basic {token}") is None
    assert cache.bearer(None) is None


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda text: text[:-1] + ("A" if text[-1] != "A" else "B"), id="secret"),
        pytest.param(lambda text: f"{text}x", id="shape"),
        pytest.param(lambda _: "", id="nothing"),
        pytest.param(lambda _: f"gw_{'a' * 12}_{'b' * 43}", id="unknown id"),
    ],
)
def test_a_wrong_token_belongs_to_nobody(cache, token, spoil):
    assert cache.identity(spoil(token)) is None


def test_a_revoked_token_is_rejected_from_the_next_round_on(context, cache, token):
    refresher = Refresher(context, cache)
    refresher.refresh()
    assert cache.identity(token) is not None
    revoke_token(context, token.split("_")[1])
    refresher.refresh()
    assert cache.identity(token) is None


def test_known_tokens_work_and_unknown_ones_fail_while_the_store_is_away(context, token):
    with connect(Settings(redis_url="redis://127.0.0.1:1/0")) as nowhere:
        cache = CredentialCache(over_nothing(nowhere))
        cache.replace(context.credentials.tokens())
        assert cache.identity(token) is not None
        with pytest.raises(StoreUnavailable):
            cache.identity(f"gw_{'a' * 12}_{'b' * 43}")


def over_nothing(client):
    from guardwave.control_plane.core import policy
    from guardwave.control_plane.core.clock import Clock
    from guardwave.control_plane.rollouts.context import make_context

    return make_context(client, clock=Clock(), policies=policy.load(None))


def test_an_unknown_id_reaches_the_store_once(store, cache):
    guess = f"gw_{'a' * 12}_{'b' * 43}"
    assert cache.identity(guess) is None
    before = commands_seen(store)
    for _ in range(5):
        assert cache.identity(guess) is None
    assert commands_seen(store) == before


def commands_seen(store):
    return store.info("commandstats").get("cmdstat_hget", {}).get("calls", 0)
