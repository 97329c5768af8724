"""One prompt of one owner under two guards, from Friday evening to Saturday."""

from dataclasses import replace
from datetime import UTC, date, datetime

from guardwave.control_plane.stores.evidence.delta.prompt_events import PromptKey
from guardwave.control_plane.stores.evidence.delta.strata import Stratum
from guardwave.reducer.vocabulary import Cohort, Mode

HERE = "internal"
FRIDAY, SATURDAY = date(2026, 11, 27), date(2026, 11, 28)
MIDNIGHT = int(datetime(2026, 11, 28, tzinfo=UTC).timestamp())
NOW = datetime(2026, 11, 29, 3, tzinfo=UTC)
OWNER = PromptKey("A" * 16, "prompt-1", 17)
GUARD = Stratum("repeated_tool_failure", "1.0.0", 2, Cohort.ENFORCED, Mode.ENFORCE)
OTHER_GUARD = replace(GUARD, guard="identical_call")
