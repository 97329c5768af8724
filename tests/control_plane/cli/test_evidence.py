"""`guardwave evidence`: out of one store and into another, which then judges it the same."""

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

from control_plane.cli import main
from control_plane.commands.owners import state_owner_facts
from control_plane.commands.rollback import acknowledge, roll_back
from control_plane.context import Context
from control_plane.etags import environment_etag
from control_plane.queries.owners import owner_view
from control_plane.settings import Settings
from control_plane.state import Evaluation
from control_plane.stores.clients import connect
from control_plane.stores.embedded import EmbeddedServer
from control_plane.stores.evidence_pages import Place
from control_plane.stores.functions import load_functions
from reducer.vocabulary import Mode, Reason
from tests.control_plane.lives import Life
from tests.control_plane.worlds import (
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
def elsewhere_server() -> Iterator[EmbeddedServer]:
    with (
        tempfile.TemporaryDirectory(prefix="gw-") as directory,
        EmbeddedServer.start(Path(directory)) as server,
    ):
        yield server


@pytest.fixture
def elsewhere(elsewhere_server: EmbeddedServer) -> Iterator[redis.Redis]:
    """An empty store beside the one that everything begins in."""
    with connect(Settings(data_dir=elsewhere_server.data_dir)) as client:
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
        told = ["evidence", *map(str, words)]
        return CliRunner().invoke(main, told, input=stdin)

    def exported(self, *words: str | Path) -> Result:
        found = self.run(self.here, "export", ENVIRONMENT, *words)
        assert found.exit_code == 0, found.stderr
        return found

    def imported(self, archive: str | Path, *, stdin: bytes | None = None) -> Result:
        return self.run(self.there, "import", archive, "--reason", WHY, stdin=stdin)


@pytest.fixture
def cli(settings, elsewhere, elsewhere_server, monkeypatch) -> Cli:
    monkeypatch.delenv("REDIS_URL", raising=False)
    return Cli(monkeypatch, settings.data_dir, elsewhere_server.data_dir)


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


def evaluated(life: Life, client: redis.Redis) -> Evaluation:
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


def everything(context: Context):
    """Return all evidence of the environment, as it lies in the store."""
    pages = context.pages
    days = context.evidence.days(ENVIRONMENT)
    cells = pages.cells(ENVIRONMENT)
    with_owners = [each for each in cells if each.cell.cohort is not None]
    places = [Place(day, bucket) for day in days for bucket in range(256)]
    return (
        {day: pages.day_fields(ENVIRONMENT, day) for day in days},
        [each for day in days for each in pages.counters(ENVIRONMENT, cells, day)],
        [pages.owner_days(ENVIRONMENT, with_owners, place) for place in places],
    )


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_store_gives_the_same_verdict_and_digest(cli, warned, elsewhere, tmp_path, form):
    here = warned.evaluate()
    archive = tmp_path / "archive"
    cli.exported("--output", archive, "--format", form)
    assert cli.imported(archive).exit_code == 0
    there = evaluated(warned, elsewhere)
    assert len(here.days_used) == 7
    assert (there.verdict, there.sentence) == (here.verdict, here.sentence)
    assert there.digest == here.digest
    assert there.result == here.result


@pytest.mark.parametrize("form", FORMS)
def test_all_evidence_lies_in_the_other_store_as_it_did(cli, life, elsewhere, tmp_path, form):
    life.live(2)
    cli.exported("--output", tmp_path / "archive", "--format", form)
    cli.imported(tmp_path / "archive")
    there = context_over(elsewhere)
    assert everything(there) == everything(life.context)
    assert sum(map(len, everything(there)[2])) == 2 * len(life.owners)


def test_evidence_goes_from_stdout_to_stdin_and_words_to_stderr(cli, life, elsewhere):
    life.live(1)
    told = cli.exported()
    lines = told.stdout_bytes.splitlines()
    assert {json.loads(line)["kind"] for line in lines} >= {"archive", "owner-day", "end"}
    assert told.stderr == f"exported {ENVIRONMENT}: 2 days, {len(life.owners)} owner-days\n"
    done = cli.imported("-", stdin=told.stdout_bytes)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "a latch holds its modes at shadow" in done.stderr


def test_one_day_is_told_as_one(cli, life):
    life.calendar.now += timedelta(hours=1)
    life.host.tell(next(iter(life.prompts(life.today))))
    told = cli.exported()
    assert told.stderr == f"exported {ENVIRONMENT}: 1 day, 1 owner-day\n"


def test_a_compressed_file_is_read_as_it_is(cli, life, elsewhere, tmp_path):
    life.live(1)
    archive = tmp_path / "archive.ndjson.gz"
    archive.write_bytes(gzip.compress(cli.exported().stdout_bytes))
    assert cli.imported(archive).exit_code == 0


def test_neither_keys_nor_salts_to_come_nor_owner_ids_leave_the_store(cli, life):
    life.live(1)
    told = cli.exported().stdout
    held = environment_of(life.context)
    for secret in (held.pseudonym_key, held.tag_key, life.rollout.salt, life.owners[0]):
        assert secret not in told


def test_what_is_imported_gives_nobody_more_than_shadow(cli, warned, elsewhere, tmp_path):
    cli.exported("--output", tmp_path / "archive")
    cli.imported(tmp_path / "archive")
    there = context_over(elsewhere, clock=warned.calendar.clock)
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
def test_the_release_of_its_latch_ends_in_shadow(cli, warned, elsewhere, tmp_path, is_rolled_back):
    cli.exported("--output", tmp_path / "archive")
    cli.imported(tmp_path / "archive")
    there = context_over(elsewhere, clock=warned.calendar.clock)

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


def test_the_audit_says_who_imported_and_why(cli, life, elsewhere, tmp_path):
    cli.exported("--output", tmp_path / "archive")
    cli.imported(tmp_path / "archive")
    (entry,) = context_over(elsewhere).environments.audit_entries(ENVIRONMENT)
    assert (entry["action"], entry["reason"]) == ("history imported", WHY)


def test_evidence_is_never_added_to_an_environment_that_is_there(cli, life, tmp_path):
    cli.exported("--output", tmp_path / "archive")
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
    ("change", "said"),
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
def test_a_spoilt_archive_is_refused_and_leaves_nothing(cli, life, elsewhere, change, said):
    life.live(1)
    lines = change(cli.exported().stdout_bytes.splitlines())
    found = cli.imported("-", stdin=b"".join(line + b"\n" for line in lines))
    assert found.exit_code == 1
    assert said in found.stderr
    assert [name for name in elsewhere.scan_iter() if b":0}" in name or b"env:" in name] == []


def test_an_import_clears_away_what_one_that_was_killed_left(cli, life, elsewhere, tmp_path):
    life.live(1)
    cli.exported("--output", tmp_path / "archive")
    left = context_over(elsewhere).imports.into(ENVIRONMENT, today=life.today)
    _, counters, placed = everything(life.context)
    left.add_counters(counters)
    left.add_owner_days([each for part in placed for each in part][:5])
    elsewhere.hset(f"od:{{{ENVIRONMENT}:0}}:77:2026-10-01:00", "A" * 16, b"stale")
    assert cli.imported(tmp_path / "archive").exit_code == 0
    assert everything(context_over(elsewhere)) == everything(life.context)
    assert not elsewhere.exists(f"od:{{{ENVIRONMENT}:0}}:77:2026-10-01:00")


def test_two_imports_do_not_write_into_each_other(cli, life, elsewhere, tmp_path):
    cli.exported("--output", tmp_path / "archive")
    assert (
        context_over(elsewhere).imports.into(ENVIRONMENT, today=life.today).hold("another import")
    )
    found = cli.imported(tmp_path / "archive")
    assert found.exit_code == 1
    assert "another import" in found.stderr


def test_parquet_is_partitioned_as_pandas_expects(cli, life, tmp_path):
    life.live(2)
    cli.exported("--output", tmp_path / "lake", "--format", "parquet")
    frame = pd.read_parquet(tmp_path / "lake")
    assert len(frame) == 2 * len(life.owners)
    assert set(frame["environment"]) == {ENVIRONMENT}
    assert frame["day"].nunique() == 2
    assert set(frame["version"]) == {VERSION}
    assert frame["started"].sum() == 4 * len(life.owners)
    assert frame["duration_counts"].map(sum).eq(frame["ended"]).all()


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        pytest.param(["nowhere"], 1, "no environment 'nowhere'", id="no environment"),
        pytest.param(
            [ENVIRONMENT, "--format", "parquet"], 2, "needs --output DIRECTORY", id="no directory"
        ),
    ],
)
def test_what_cannot_be_exported_is_said(cli, life, words, exit_code, said):
    found = cli.run(cli.here, "export", *words)
    assert (found.exit_code, found.stdout) == (exit_code, "")
    assert said in found.stderr


@pytest.mark.parametrize("form", FORMS)
def test_an_export_overwrites_nothing(cli, life, tmp_path, form):
    cli.exported("--output", tmp_path / "archive", "--format", form)
    words = [ENVIRONMENT, "--output", tmp_path / "archive", "--format", form]
    found = cli.run(cli.here, "export", *words)
    assert found.exit_code in {1, 2}
    assert "exists; name" in found.stderr
    assert not list(tmp_path.glob("*.partial"))


def test_an_import_needs_a_reason(cli, life, tmp_path):
    cli.exported("--output", tmp_path / "archive")
    found = cli.run(cli.there, "import", tmp_path / "archive", "--reason", "because")
    assert (found.exit_code, "reason has 7 characters" in found.stderr) == (1, True)
