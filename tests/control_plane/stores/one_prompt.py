"""One prompt of one owner under two guards, from Friday evening to Saturday, and when it seals."""

from dataclasses import replace
from datetime import UTC, date, datetime

from control_plane.stores.cells import Cell
from control_plane.stores.prompt_events import PromptKey
from reducer.vocabulary import Cohort, Mode

HERE = "internal"
FRIDAY, SATURDAY = date(2026, 11, 27), date(2026, 11, 28)
MIDNIGHT = int(datetime(2026, 11, 28, tzinfo=UTC).timestamp())
NOW = datetime(2026, 11, 29, 3, tzinfo=UTC)
OWNER = PromptKey("A" * 16, "prompt-1", 17)
GUARD = Cell("repeated_tool_failure", "1.0.0", 2, Cohort.ENFORCED, Mode.ENFORCE)
OTHER_GUARD = replace(GUARD, guard="identical_call")
