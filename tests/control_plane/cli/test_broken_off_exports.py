"""Exports that do not come to their end: what they say, and that they leave nothing to be read."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pandas as pd
import pytest
import redis
from click import ClickException

from control_plane.cli.parquet import written
from control_plane.clock import Clock
from control_plane.context import Context
from control_plane.errors import StateConflict
from control_plane.queries.archive_lines import Line, sealed
from control_plane.queries.archives import archive_of
from control_plane.stores.evidence_pages import PlacedOwnerDay
from tests.control_plane.lives import Life
from tests.control_plane.worlds import ENVIRONMENT


@pytest.fixture
def life(store: redis.Redis) -> Life:
    return Life.begin(store)


def meanwhile_revised(context: Context, life: Life) -> Iterator[Line]:
    """Yield an archive's lines, and let a sealed day be revised when the first owner-day came."""
    is_revised = False
    for line in archive_of(context, ENVIRONMENT):
        yield line
        if isinstance(line, PlacedOwnerDay) and not is_revised:
            (prompt, *_) = life.prompts(life.today - timedelta(days=1))
            life.host.tell(replace(prompt, prompt_id="late"))
            is_revised = True


@pytest.mark.parametrize(
    ("speed", "said"),
    [
        pytest.param(1.0, r"\(a rollout, or a sealed day\); export it again$", id="wall time"),
        pytest.param(10_800.0, "days of a demo pass in seconds: stop the demo", id="a demo"),
    ],
)
def test_an_export_of_what_changes_meanwhile_is_refused(life, speed, said):
    life.live(1)
    wall = life.calendar.clock
    context = replace(life.context, clock=Clock(wall.wall_ns, wall.wall_ns(), wall.now_ns(), speed))
    with pytest.raises(StateConflict, match=said):
        list(meanwhile_revised(context, life))


@pytest.mark.parametrize(
    "was_there", [pytest.param(False, id="a new directory"), pytest.param(True, id="an old one")]
)
def test_a_refused_export_leaves_no_directory_that_looks_like_a_frame(life, tmp_path, was_there):
    life.live(1)
    lake = tmp_path / "lake"
    if was_there:
        lake.mkdir()
    with pytest.raises(StateConflict):
        written(lake, sealed(meanwhile_revised(life.context, life)))
    assert lake.exists() is was_there
    assert list(tmp_path.rglob("lake/*")) == []


def test_what_a_killed_export_left_is_named_and_read_by_nobody(life, tmp_path):
    life.live(1)
    written(tmp_path / "whole", sealed(archive_of(life.context, ENVIRONMENT)))
    lake = tmp_path / "lake"
    left = lake / f"_environment={ENVIRONMENT}.partial"
    shutil.copytree(tmp_path / "whole" / f"environment={ENVIRONMENT}", left)
    with pytest.raises(ClickException, match="partial exists: an export is writing it, or one was"):
        written(lake, sealed(archive_of(life.context, ENVIRONMENT)))
    shutil.copytree(left, lake / f"environment={ENVIRONMENT}")
    assert len(pd.read_parquet(lake)) == len(life.owners)
