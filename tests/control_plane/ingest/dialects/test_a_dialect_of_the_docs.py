"""The dialect in docs/dialects.md, run by the same code as the shipped ones."""

import re
from pathlib import Path
from typing import Any

from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.control_plane.ingest.model.otlp_values import Value
from guardwave.control_plane.ingest.model.records import PromptEnd, PromptStart
from guardwave.control_plane.ingest.model.rejections import IgnoreReason, RejectReason
from guardwave.control_plane.ingest.reading import RequestContext, read_logs
from guardwave.reducer.vocabulary import Outcome
from tests.support.otlp.bodies import NOW_NS, decode_logs, log_request

DOCS = Path(__file__).parents[4] / "docs" / "dialects.md"
WRITTEN = re.compile(r"<!-- a test runs this -->\n```python\n(.*?)```", re.DOTALL)


def read(event: str, version: str = "2.1", **attributes: Value):
    block = WRITTEN.search(DOCS.read_text())
    assert block is not None
    written: dict[str, Any] = {}
    exec(block[1], written)  # the code of our own document
    request = log_request(attributes, event=event, scope=("tiny-agent", version))
    batches = decode_logs(request.SerializeToString(), Encoding.PROTOBUF)
    return read_logs(batches, RequestContext("internal", NOW_NS), [written["TinyAgentDialect"]()])


def test_a_start_and_an_end_become_records():
    (start,) = read("task.begin", task="t-1").records
    assert isinstance(start, PromptStart)
    (end,) = read("task.end", task="t-1", how="gave up", rounds=3, took=2.5).records
    assert isinstance(end, PromptEnd)
    assert (start.prompt_id, end.prompt_id) == ("t-1", "t-1")
    reported = (end.outcome, end.turns, end.duration_seconds, end.input_tokens)
    assert reported == (Outcome.FAILED, 3, 2.5, None)


def test_what_it_does_not_know_is_counted_or_rejected_by_name():
    assert read("task.thought", task="t-1").ignored_by_reason == {IgnoreReason.UNKNOWN_EVENT: 1}
    (rejected,) = read("task.end", task="t-1", how="magic").rejected
    assert rejected.detail.startswith("how is 'magic', not one of done, gave up, ctrl-c")
    (old,) = read("task.begin", "1.9", task="t-1").rejected
    assert old.reason is RejectReason.CONTRACT_UNKNOWN
