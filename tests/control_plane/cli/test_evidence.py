"""`guardwave evidence`: out of one store and into another, which reaches the same verdicts."""

import gzip
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pandas as pd
import pytest
import redis
from click.testing import CliRunner, Result

from guardwave.control_plane.cli import main
from guardwave.control_plane.commands.owners import state_owner_facts
from guardwave.control_plane.commands.rollback import acknowledge, roll_back
from guardwave.control_plane.core.etags import environment_etag
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.core.state import Evaluation
from guardwave.control_plane.queries.owners import owner_view
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.evidence.pages import DayBucket
from guardwave.control_plane.stores.server.clients import connect
from guardwave.control_plane.stores.server.embedded import EmbeddedServer
from guardwave.control_plane.stores.server.function_library import load_functions
from guardwave.reducer.vocabulary import Mode, Reason
from tests.support.lives import Life
from tests.support.worlds import (
    ENVIRONMENT,
    GUARD,
    KNOWN,
    OPERATOR,
    VERSION,
    WHY,
    context_over,
    environment_of,
)

FORMS = [pytest.param("ndjson", id="ndjson"), pytest.param("parquet", id="parquet")]


@pytest.fixture(scope="module")
def other_server() -> Iterator[EmbeddedServer]:
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        EmbeddedServer.start(Path(directory)) as server,
    ):
        yield server


@pytest.fixture
def other_store(other_server: EmbeddedServer) -> Iterator[redis.Redis]:
    """An empty store beside the one that everything begins in."""
    with connect(Settings(data_dir=other_server.data_dir)) as client:
        client.flushall()
        load_functions(client)
        yield client


@dataclass
class Cli:
    """`guardwave evidence` at one of two stores."""

    monkeypatch: pytest.MonkeyPatch
    here: Path
    there: Path

    def run(self, where: Path, *words: str | Path, stdin: bytes | None = None) -> Result:
        self.monkeypatch.setenv("GUARDWAVE_DATA", str(where))
        arguments = ["evidence", *map(str, words)]
        return CliRunner().invoke(main, arguments, input=stdin)

    def export(self, *words: str | Path) -> Result:
        found = self.run(self.here, "export", ENVIRONMENT, *words)
        assert found.exit_code == 0, found.stderr
        return found

    def import_archive(self, archive: str | Path, *, stdin: bytes | None = None) -> Result:
        return self.run(self.there, "import", archive, "--reason", WHY, stdin=stdin)


@pytest.fixture
def cli(settings, other_store, other_server, monkeypatch) -> Cli:
    monkeypatch.delenv("REDIS_URL", raising=False)
    return Cli(monkeypatch, settings.data_dir, other_server.data_dir)


@pytest.fixture
def life(store: redis.Redis) -> Life:
    return Life.begin(store)


@pytest.fixture
def warned(life: Life) -> Life:
    """A life with a week of shadow and a week of warn."""
    life.live(7)
    assert life.promote(Mode.WARN).refusal is None
    life.live(8)
    return life


def evaluate_store(life: Life, client: redis.Redis) -> Evaluation:
    """Evaluate the gate of a store at the life's present moment."""
    there = Life(
        context_over(client, clock=life.calendar.clock),
        life.calendar,
        life.host,
        client,
        ENVIRONMENT,
        life.owners,
    )
    return there.evaluate()


def all_evidence(context: Context):
    """Return all evidence of the environment, as it lies in the store."""
    pages = context.pages
    days = context.evidence.days(ENVIRONMENT)
    strata = pages.strata(ENVIRONMENT)
    with_owners = [stratum for stratum in strata if stratum.stratum.cohort is not None]
    places = [DayBucket(day, bucket) for day in days for bucket in range(256)]
    return (
        {day: pages.day_fields(ENVIRONMENT, day) for day in days},
        [counter for day in days for counter in pages.counters(ENVIRONMENT, strata, day)],
        [pages.owner_days(ENVIRONMENT, with_owners, place) for place in places],
    )


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_store_gives_the_same_verdict_and_digest(cli, warned, other_store, tmp_path, form):
    here = warned.evaluate()
    archive = tmp_path / "archive"
    cli.export("--output", archive, "--format", form)
    assert cli.import_archive(archive).exit_code == 0
    there = evaluate_store(warned, other_store)
    assert len(here.days_used) == 7
    assert (there.verdict, there.sentence) == (here.verdict, here.sentence)
    assert there.digest == here.digest
    assert there.result == here.result


@pytest.mark.parametrize("form", FORMS)
def test_all_evidence_lies_in_the_other_store_as_it_did(cli, life, other_store, tmp_path, form):
    life.live(2)
    cli.export("--output", tmp_path / "archive", "--format", form)
    cli.import_archive(tmp_path / "archive")
    there = context_over(other_store)
    assert all_evidence(there) == all_evidence(life.context)
    assert sum(map(len, all_evidence(there)[2])) == 2 * len(life.owners)


def test_evidence_goes_from_stdout_to_stdin_and_words_to_stderr(cli, life, other_store):
    life.live(1)
    export = cli.export()
    lines = export.stdout_bytes.splitlines()
    assert {json.loads(line)["kind"] for line in lines} >= {"archive", "owner-day", "end"}
    assert export.stderr == f"exported {ENVIRONMENT}: 2 days, {len(life.owners)} owner-days\n"
    done = cli.import_archive("-", stdin=export.stdout_bytes)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "a latch holds its modes at shadow" in done.stderr


def test_one_day_is_reported_in_the_singular(cli, life):
    life.calendar.now += timedelta(hours=1)
    life.host.send_prompts(next(iter(life.prompts(life.today))))
    export = cli.export()
    assert export.stderr == f"exported {ENVIRONMENT}: 1 day, 1 owner-day\n"


def test_a_compressed_file_is_read_as_it_is(cli, life, other_store, tmp_path):
    life.live(1)
    archive = tmp_path / "archive.ndjson.gz"
    archive.write_bytes(gzip.compress(cli.export().stdout_bytes))
    assert cli.import_archive(archive).exit_code == 0


def test_neither_keys_nor_salts_to_come_nor_owner_ids_leave_the_store(cli, life):
    life.live(1)
    archive = cli.export().stdout
    held = environment_of(life.context)
    for secret in (held.pseudonym_key, held.tag_key, life.rollout.salt, life.owners[0]):
        assert secret not in archive


def test_what_is_imported_gives_nobody_more_than_shadow(cli, warned, other_store, tmp_path):
    cli.export("--output", tmp_path / "archive")
    cli.import_archive(tmp_path / "archive")
    there = context_over(other_store, clock=warned.calendar.clock)
    facts = dict.fromkeys(warned.owners, KNOWN)
    state_owner_facts(there, ENVIRONMENT, facts, actor=OPERATOR, reason=WHY)
    for owner in warned.owners:
        (found,) = owner_view(there, ENVIRONMENT, owner).allotments
        assert found.allotment.mode is Mode.SHADOW
        assert found.allotment.reasons[0] is Reason.ROLLOUT_LATCHED


@pytest.mark.parametrize(
    "is_rolled_back",
    [pytest.param(True, id="rolled back first"), pytest.param(False, id="at once")],
)
def test_the_release_of_its_latch_ends_in_shadow(
    cli, warned, other_store, tmp_path, is_rolled_back
):
    cli.export("--output", tmp_path / "archive")
    cli.import_archive(tmp_path / "archive")
    there = context_over(other_store, clock=warned.calendar.clock)

    def release():
        return acknowledge(
            there,
            ENVIRONMENT,
            1,
            last_violation=0,
            actor=OPERATOR,
            reason=WHY,
            if_match=environment_etag(environment_of(there)),
        )

    before = there.environments.rollout(ENVIRONMENT, GUARD)
    assert before is not None
    if is_rolled_back:
        assert roll_back(there, ENVIRONMENT, actor=OPERATOR, reason=WHY).is_verified
    assert release().latch is None
    found = there.environments.rollout(ENVIRONMENT, GUARD)
    assert found is not None
    assert (before.phase, found.phase) == (Mode.WARN, Mode.SHADOW)
    assert found.wave > before.wave


def test_the_audit_names_who_imported_and_why(cli, life, other_store, tmp_path):
    cli.export("--output", tmp_path / "archive")
    cli.import_archive(tmp_path / "archive")
    (entry,) = context_over(other_store).environments.audit_entries(ENVIRONMENT)
    assert (entry["action"], entry["reason"]) == ("history imported", WHY)


def test_evidence_is_never_added_to_an_environment_that_is_there(cli, life, tmp_path):
    cli.export("--output", tmp_path / "archive")
    found = cli.run(cli.here, "import", tmp_path / "archive", "--reason", WHY)
    assert found.exit_code == 1
    assert "never added up" in found.stderr


def _without_last(lines: list[bytes]) -> list[bytes]:
    return lines[:-1]


def _without_one_in_between(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-2], lines[-1]]


def _with_one_edited(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"started":2', b'"started":9') for line in lines]


def _sealed_again(lines: list[bytes]) -> list[bytes]:
    body = b"".join(line + b"\n" for line in lines[:-1])
    end = {"lines": len(lines) - 1, "sha256": sha256(body).hexdigest(), "kind": "end"}
    return [*lines[:-1], json.dumps(end).encode()]


def _with_negative_count(lines: list[bytes]) -> list[bytes]:
    return _sealed_again([line.replace(b'"started":2', b'"started":-2') for line in lines])


def _with_strange_kind(lines: list[bytes]) -> list[bytes]:
    return _sealed_again([line.replace(b'"kind":"day"', b'"kind":"night"') for line in lines])


def _with_wave_of_another_phase(lines: list[bytes]) -> list[bytes]:
    other = b'"phase":"shadow","generation"', b'"phase":"enforce","generation"'
    return _sealed_again([line.replace(*other) for line in lines])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(_without_last, "was cut short after", id="cut short"),
        pytest.param(_without_one_in_between, "not as it was exported", id="a line is missing"),
        pytest.param(_with_one_edited, "not as it was exported", id="a line was edited"),
        pytest.param(_with_negative_count, "started is -2", id="an impossible count"),
        pytest.param(_with_strange_kind, "kind is 'night'", id="an unknown kind of line"),
        pytest.param(_with_wave_of_another_phase, "has no wave 1 in enforce", id="a raised phase"),
        pytest.param(lambda lines: lines[1:], "it comes first", id="no head"),
        pytest.param(lambda _: [], "cut short after 0 lines", id="an empty file"),
        pytest.param(lambda _: [b"owner,day"], "line 1: ", id="no archive at all"),
    ],
)
def test_a_spoilt_archive_is_refused_and_leaves_nothing(cli, life, other_store, change, message):
    life.live(1)
    lines = change(cli.export().stdout_bytes.splitlines())
    found = cli.import_archive("-", stdin=b"".join(line + b"\n" for line in lines))
    assert found.exit_code == 1
    assert message in found.stderr
    assert [name for name in other_store.scan_iter() if b":0}" in name or b"env:" in name] == []


def test_an_import_clears_away_what_one_that_was_killed_left(cli, life, other_store, tmp_path):
    life.live(1)
    cli.export("--output", tmp_path / "archive")
    left = context_over(other_store).imports.open(ENVIRONMENT, today=life.today)
    _, counters, placed = all_evidence(life.context)
    left.add_counters(counters)
    left.add_owner_days([owner_day for part in placed for owner_day in part][:5])
    other_store.hset(f"od:{{{ENVIRONMENT}:0}}:77:2026-10-01:00", "A" * 16, b"stale")
    assert cli.import_archive(tmp_path / "archive").exit_code == 0
    assert all_evidence(context_over(other_store)) == all_evidence(life.context)
    assert not other_store.exists(f"od:{{{ENVIRONMENT}:0}}:77:2026-10-01:00")


def test_two_imports_do_not_write_into_each_other(cli, life, other_store, tmp_path):
    cli.export("--output", tmp_path / "archive")
    assert (
        context_over(other_store).imports.open(ENVIRONMENT, today=life.today).hold("another import")
    )
    found = cli.import_archive(tmp_path / "archive")
    assert found.exit_code == 1
    assert "another import" in found.stderr


def test_parquet_is_partitioned_as_pandas_expects(cli, life, tmp_path):
    life.live(2)
    cli.export("--output", tmp_path / "lake", "--format", "parquet")
    frame = pd.read_parquet(tmp_path / "lake")
    assert len(frame) == 2 * len(life.owners)
    assert set(frame["environment"]) == {ENVIRONMENT}
    assert frame["day"].nunique() == 2
    assert set(frame["version"]) == {VERSION}
    assert frame["started"].sum() == 4 * len(life.owners)
    assert frame["duration_counts"].map(sum).eq(frame["ended"]).all()


@pytest.mark.parametrize(
    ("words", "exit_code", "message"),
    [
        pytest.param(["nowhere"], 1, "no environment 'nowhere'", id="no environment"),
        pytest.param(
            [ENVIRONMENT, "--format", "parquet"], 2, "needs --output DIRECTORY", id="no directory"
        ),
    ],
)
def test_an_export_that_cannot_be_made_names_the_reason(cli, life, words, exit_code, message):
    found = cli.run(cli.here, "export", *words)
    assert (found.exit_code, found.stdout) == (exit_code, "")
    assert message in found.stderr


@pytest.mark.parametrize("form", FORMS)
def test_an_export_overwrites_nothing(cli, life, tmp_path, form):
    cli.export("--output", tmp_path / "archive", "--format", form)
    words = [ENVIRONMENT, "--output", tmp_path / "archive", "--format", form]
    found = cli.run(cli.here, "export", *words)
    assert found.exit_code in {1, 2}
    assert "exists; name" in found.stderr
    assert not list(tmp_path.glob("*.partial"))


def test_an_import_needs_a_reason(cli, life, tmp_path):
    cli.export("--output", tmp_path / "archive")
    found = cli.run(cli.there, "import", tmp_path / "archive", "--reason", "because")
    assert (found.exit_code, "reason has 7 characters" in found.stderr) == (1, True)
