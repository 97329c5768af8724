"""`guardwave audit verify`: the chains of a real store."""

import json

import pytest
import redis
from click.testing import CliRunner

from guardwave.control_plane.cli import main
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.stores.keys import EnvironmentKeys
from guardwave.reducer.vocabulary import Mode
from tests.support.worlds import ENVIRONMENT, context_over, world_in


@pytest.fixture
def run(store: redis.Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch):
    world_in(context_over(store), Mode.ENFORCE, owners=40)
    monkeypatch.setenv("GUARDWAVE_DATA", str(settings.data_dir))
    monkeypatch.delenv("REDIS_URL", raising=False)
    return lambda: CliRunner().invoke(main, ["audit", "verify"])


def test_a_chain_that_nobody_touched_is_unbroken(run):
    found = run()

    assert found.exit_code == 0
    assert f"{ENVIRONMENT}: " in found.stdout
    assert "unbroken" in found.stdout


def test_an_edited_entry_is_reported_and_ends_with_one(run, store):
    stream = EnvironmentKeys(ENVIRONMENT).audit
    (place, fields), *later = store.xrange(stream)
    edited = {**json.loads(fields[b"entry"]), "reason": "somebody else did it"}
    store.delete(stream)
    store.xadd(stream, {**fields, b"entry": json.dumps(edited, sort_keys=True)}, id=place)
    for entry_id, kept in later:
        store.xadd(stream, kept, id=entry_id)

    found = run()

    assert found.exit_code == 1
    assert "broken at 1" in found.stdout
    assert "compare it with a backup" in found.stderr
