"""Bounds that are stated in several places are the same in each."""

import re
from importlib import resources
from pathlib import Path

from control_plane.stores.evidence_points import MOST_STREAMS_OF_7_DAYS, MOST_STREAMS_OF_48_HOURS

STORE_PAGE = Path(__file__).parents[3] / "docs" / "store.md"
LIBRARY = resources.files("control_plane.stores") / "evidence.lua"


def test_the_library_holds_the_bounds_of_streams_that_a_sender_is_told():
    (held,) = re.findall(r"^local MOST_STREAMS = (.*)$", LIBRARY.read_text(), re.MULTILINE)
    bounds = (MOST_STREAMS_OF_48_HOURS, MOST_STREAMS_OF_7_DAYS)
    assert held == "{{ [48 * 3600] = {}, [KEEP_STREAM_S] = {} }}".format(*bounds)
    assert "local KEEP_STREAM_S = 7 * 86400" in LIBRARY.read_text()


def test_the_page_of_the_store_states_the_bounds_of_streams_that_a_sender_is_told():
    page = STORE_PAGE.read_text()
    day_bound, week_bound = f"{MOST_STREAMS_OF_48_HOURS:,}", f"{MOST_STREAMS_OF_7_DAYS:,}"
    assert f"| {day_bound} within 48 hours, {week_bound} within 7 days (of each shard) |" in page
    assert f"counts against the {day_bound} of its token" in page
