"""Credentials in the audit: each one made or revoked is recorded with its actor."""

import pytest

from guardwave.control_plane.core.state import Action
from guardwave.control_plane.rollouts.access import (
    COMMAND_LINE,
    create_token,
    parse_token,
    revoke_token,
)
from guardwave.reducer.vocabulary import Mode, Role
from tests.support.worlds import ENVIRONMENT, OPERATOR, context_over, world_in


@pytest.fixture
def context(store):
    return world_in(context_over(store), Mode.SHADOW, owners=1).context


def entries(context, count=1):
    return context.environments.audit_entries(ENVIRONMENT, count=count)


@pytest.mark.parametrize(
    ("is_trusted", "trust"),
    [pytest.param(True, "trusted", id="trusted"), pytest.param(False, "not trusted", id="not")],
)
def test_the_audit_names_a_token_that_is_made_and_who_made_it(context, is_trusted, trust):
    text = create_token(
        context, role=Role.INGEST, environment=ENVIRONMENT, is_trusted=is_trusted, actor=OPERATOR
    )
    token_id, secret = parse_token(text) or ("", "")
    (entry,) = entries(context)
    assert (entry["action"], entry["actor"]) == (Action.TOKEN_CREATED, OPERATOR.id)
    assert entry["target"] == f"ingest {token_id}, {trust}"
    assert secret not in str(entry)


def test_the_audit_names_a_token_that_is_revoked_once(context):
    text = create_token(context, role=Role.VIEWER, environment=ENVIRONMENT)
    token_id, _ = parse_token(text) or ("", "")
    assert revoke_token(context, token_id).is_revoked
    assert revoke_token(context, token_id, actor=OPERATOR).is_revoked
    newest, before = entries(context, count=2)
    assert (newest["action"], newest["actor"]) == (Action.TOKEN_REVOKED, COMMAND_LINE.id)
    assert newest["target"] == f"viewer {token_id}, not trusted"
    assert before["action"] == Action.TOKEN_CREATED


def test_a_token_of_all_environments_or_of_none_yet_is_in_no_audit(context):
    before = entries(context)
    create_token(context, role=Role.ADMIN, environment=None)
    create_token(context, role=Role.VIEWER, environment="not-yet")
    assert entries(context) == before
    assert context.environments.load("not-yet") is None
