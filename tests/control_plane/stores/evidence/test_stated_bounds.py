"""Documented bounds: code, Lua library and documents state the same."""

import re
from pathlib import Path

from guardwave.control_plane.stores.evidence.delta.points import (
    MOST_STREAMS_OF_7_DAYS,
    MOST_STREAMS_OF_48_HOURS,
)
from guardwave.control_plane.stores.server.function_library import libraries

STORE_PAGE = Path(__file__).parents[4] / "docs" / "store.md"
LIBRARY = next(one.source for one in libraries() if one.name.endswith("evidence"))


def test_the_library_has_the_documented_bounds_of_streams():
    (held,) = re.findall(r"^local MOST_STREAMS = (.*)$", LIBRARY, re.MULTILINE)
    bounds = (MOST_STREAMS_OF_48_HOURS, MOST_STREAMS_OF_7_DAYS)
    assert held == "{{ [48 * 3600] = {}, [KEEP_STREAM_S] = {} }}".format(*bounds)
    assert "local KEEP_STREAM_S = 7 * 86400" in LIBRARY


def test_the_page_of_the_store_states_the_bounds_of_streams():
    page = STORE_PAGE.read_text()
    day_bound, week_bound = f"{MOST_STREAMS_OF_48_HOURS:,}", f"{MOST_STREAMS_OF_7_DAYS:,}"
    assert f"| {day_bound} within 48 hours, {week_bound} within 7 days (of each shard) |" in page
    assert f"counts against the {day_bound} of its token" in page
