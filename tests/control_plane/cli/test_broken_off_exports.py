"""Broken-off exports: their message, and no file left behind that could be read."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pandas as pd
import pytest
import redis
from click import ClickException

from guardwave.control_plane.archive.export import export_archive
from guardwave.control_plane.archive.lines import Line, serialize
from guardwave.control_plane.archive.parquet import write_parquet
from guardwave.control_plane.core.clock import Clock
from guardwave.control_plane.core.errors import StateConflict
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.evidence.pages import StratumOwnerDay
from tests.support.lives import Life
from tests.support.worlds import ENVIRONMENT


@pytest.fixture
def life(store: redis.Redis) -> Life:
    return Life.begin(store)


def lines_with_revision(context: Context, life: Life) -> Iterator[Line]:
    """Yield an archive's lines, and let a sealed day be revised when the first owner-day came."""
    is_revised = False
    for line in export_archive(context, ENVIRONMENT):
        yield line
        if isinstance(line, StratumOwnerDay) and not is_revised:
            (prompt, *_) = life.prompts(life.today - timedelta(days=1))
            life.host.send_prompts(replace(prompt, prompt_id="late"))
            is_revised = True


@pytest.mark.parametrize(
    ("speed", "message"),
    [
        pytest.param(1.0, r"\(a rollout, or a sealed day\); export it again$", id="wall time"),
        pytest.param(10_800.0, "days of a demo pass in seconds: stop the demo", id="a demo"),
    ],
)
def test_an_export_of_evidence_that_changes_meanwhile_is_refused(life, speed, message):
    life.live(1)
    wall = life.calendar.clock
    context = replace(life.context, clock=Clock(wall.wall_ns, wall.wall_ns(), wall.now_ns(), speed))
    with pytest.raises(StateConflict, match=message):
        list(lines_with_revision(context, life))


@pytest.mark.parametrize(
    "was_there", [pytest.param(False, id="a new directory"), pytest.param(True, id="an old one")]
)
def test_a_refused_export_leaves_no_directory_that_looks_like_a_frame(life, tmp_path, was_there):
    life.live(1)
    lake = tmp_path / "lake"
    if was_there:
        lake.mkdir()
    with pytest.raises(StateConflict):
        write_parquet(lake, serialize(lines_with_revision(life.context, life)))
    assert lake.exists() is was_there
    assert list(tmp_path.rglob("lake/*")) == []


def test_what_a_killed_export_left_is_named_and_read_by_nobody(life, tmp_path):
    life.live(1)
    write_parquet(tmp_path / "whole", serialize(export_archive(life.context, ENVIRONMENT)))
    lake = tmp_path / "lake"
    left = lake / f"_environment={ENVIRONMENT}.partial"
    shutil.copytree(tmp_path / "whole" / f"environment={ENVIRONMENT}", left)
    with pytest.raises(ClickException, match="partial exists: an export is writing it, or one was"):
        write_parquet(lake, serialize(export_archive(life.context, ENVIRONMENT)))
    shutil.copytree(left, lake / f"environment={ENVIRONMENT}")
    assert len(pd.read_parquet(lake)) == len(life.owners)
