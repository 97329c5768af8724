"""Recorded bodies through the real door: volume as they are, evidence under our ids."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

import orjson
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from guardwave.control_plane.commands.environments import create_environment, create_rollout
from guardwave.control_plane.core.clock import fixed_clock, from_ns
from guardwave.control_plane.core.otlp_request import Encoding
from guardwave.control_plane.ingest.model.otlp_values import NumberPoint
from guardwave.control_plane.rollouts.context import Context
from guardwave.control_plane.stores.evidence.owner_days import OwnerDay
from guardwave.reducer.catalogue import CATALOGUE
from guardwave.reducer.rollout.assignment import Assignment
from guardwave.reducer.vocabulary import Cohort, Mode
from tests.support.hosts import Host, encode_request, gzip_body, issue_id, partial_of, pseudonym_in
from tests.support.otlp.bodies import Recorded, decode_logs, decode_metrics, recorded
from tests.support.worlds import GUARD, OPERATOR, WHY, context_over

ASSIGNMENT_ID = "agent.guard.assignment.id"
TOTAL = "agent.guard.transitions"
LOGS = sorted(
    name
    for name, found in recorded().items()
    if found.is_logs and "stdlib" not in name and "filelog" not in name
)
DELTAS = sorted(
    name
    for name, found in recorded().items()
    if not found.is_logs
    and found.entry["temporality"] == [1]
    # quarantined, and of two environments: they have tests of their own
    and name not in {"metrics_pb_no_environment_0.pb", "rotel_fwd_2.pb.gz"}
)
OTHERS = sorted(name for name in recorded() if name not in {*LOGS, *DELTAS})


def moment_of(found: Recorded) -> int:
    """Return the time of a request's newest record or point, 0 when none has one."""
    if found.is_logs:
        records = [
            r for b in read(found).resource_logs for s in b.scope_logs for r in s.log_records
        ]
        return max((r.time_unix_nano or r.observed_time_unix_nano for r in records), default=0)
    points = [
        point
        for batch in decode_metrics(found.body, found.encoding)
        for scope in batch.scopes
        for point in scope.points
    ]
    return max((p.time_ns for p in points if isinstance(p, NumberPoint)), default=0)


def environment_of(found: Recorded) -> str:
    decode = decode_logs if found.is_logs else decode_metrics
    attributes = decode(found.body, found.encoding)[-1].attributes
    named = attributes.get("deployment.environment.name") or attributes.get(
        "deployment.environment", "internal"
    )
    assert isinstance(named, str)
    return named


@dataclass(frozen=True)
class Receiver:
    """An environment that knows every guard, a minute after a body was recorded."""

    context: Context
    host: Host
    environment: str

    @classmethod
    def of(cls, store, found: Recorded) -> "Receiver":
        environment = environment_of(found)
        now = from_ns(moment_of(found) or 1_795_980_300_000_000_000) + timedelta(minutes=1)
        context = context_over(store, clock=fixed_clock(now))
        create_environment(context, environment, requires=None, actor=OPERATOR, reason=WHY)
        for guard in CATALOGUE:
            create_rollout(
                context, environment, guard, version_pin=("1.4.2",), actor=OPERATOR, reason=WHY
            )
        return cls(context, Host(context, environment=environment), environment)

    def post(self, found: Recorded):
        """Send a recorded request as its client sent it."""
        return self.host.post(
            found.wire_body,
            signal="logs" if found.is_logs else "metrics",
            content_type=str(found.entry["content_type"]),
            content_encoding=str(found.entry["content_encoding"]) or None,
            is_chunked=bool(found.entry["chunked"]),
        )

    def counters(self) -> Counter[str]:
        counted: Counter[str] = Counter()
        for day in self.context.evidence.days(self.environment):
            for (_, counter), value in self.context.evidence.counters(
                self.environment, day
            ).items():
                counted[counter.partition("{")[0]] += value
        return counted

    def rows(self, guard: str) -> tuple[OwnerDay, ...]:
        days = self.context.evidence.days(self.environment)
        return self.context.evidence.owner_days(self.environment, guard, 1, days)

    def evidence(self) -> tuple[object, ...]:
        """Everything that counts: owner-days of every guard, counters, and the days' sums."""
        held = self.context.evidence
        days = held.days(self.environment)
        return (
            {guard: self.rows(guard) for guard in CATALOGUE},
            {day: held.counters(self.environment, day) for day in days},
            self.context.owners.all_facts(self.environment),
        )

    def id_for(self, owner: str) -> str:
        pseudonym = pseudonym_in(self.context, owner, environment=self.environment)
        assignment = Assignment(GUARD, pseudonym, 1, Cohort.EVERYONE, Mode.ENFORCE, 1)
        return issue_id(self.context, assignment, environment=self.environment)


def read(found: Recorded) -> ExportLogsServiceRequest:
    """Return a recorded log request as protobuf alone reads it."""
    if found.encoding is Encoding.PROTOBUF:
        return ExportLogsServiceRequest.FromString(found.body)
    return ParseDict(orjson.loads(found.body), ExportLogsServiceRequest())


def reissued(found: Recorded, receiver: Receiver) -> ExportLogsServiceRequest:
    """Return a recorded request with our assignment ids, and an owner for each prompt."""
    request = read(found)
    for record in records_of(request):
        values = {pair.key: pair.value for pair in record.attributes}
        assignment_id = receiver.id_for(values["agent.guard.prompt.id"].string_value)
        if ASSIGNMENT_ID not in values:
            record.attributes.add(key=ASSIGNMENT_ID)
        for pair in record.attributes:
            if pair.key == ASSIGNMENT_ID:
                pair.value.string_value = assignment_id
    return request


def records_of(request: ExportLogsServiceRequest):
    return [
        record
        for batch in request.resource_logs
        for scope in batch.scope_logs
        for record in scope.log_records
    ]


def reported_by(request: ExportLogsServiceRequest) -> Counter[str]:
    """Count what a request holds, read by protobuf alone."""
    counted: Counter[str] = Counter()
    for record in records_of(request):
        values = {pair.key: pair.value for pair in record.attributes}
        if record.event_name != "agent.guard.prompt.end":
            continue
        counted["prompts"] += 1
        counted["turns"] += values["agent.guard.prompt.turns"].int_value
        tokens = [
            values[key].int_value
            for key in values
            if key.endswith(("usage.input_tokens", "usage.output_tokens"))
        ]
        counted["tokens"] += min(sum(tokens), 2**53 - 1)
    return counted


@pytest.mark.parametrize("name", DELTAS)
def test_the_volume_of_a_recorded_metric_body_agrees_with_the_index(store, name):
    found = recorded()[name]
    receiver = Receiver.of(store, found)
    assert partial_of(receiver.post(found), "metrics") == (0, "")
    assert receiver.counters()[TOTAL] == found.entry["transitions_total"]


@pytest.mark.parametrize("name", LOGS)
def test_the_ids_in_a_recorded_log_body_are_not_ours(store, name):
    found = recorded()[name]
    receiver = Receiver.of(store, found)
    bearing = [r for r in records_of(read(found)) if ASSIGNMENT_ID in {p.key for p in r.attributes}]
    rejected, message = partial_of(receiver.post(found))
    assert rejected == len(bearing)
    assert message.startswith(
        "forged_assignment: agent.guard.assignment.id is not one" * bool(bearing)
    )
    assert not any(receiver.rows(guard) for guard in CATALOGUE)


@pytest.mark.parametrize("name", LOGS)
def test_without_its_ids_a_recorded_log_body_is_volume_only(store, name):
    found = recorded()[name]
    receiver = Receiver.of(store, found)
    request = reissued(found, receiver)
    for record in records_of(request):
        kept = [pair for pair in record.attributes if pair.key != ASSIGNMENT_ID]
        del record.attributes[:]
        record.attributes.extend(kept)
    assert partial_of(receiver.host.send(request)) == (0, "")
    expected = found.entry["event_names"]
    counted = receiver.counters()
    assert {name: counted[name] for name in expected} == expected
    assert not any(receiver.rows(guard) for guard in CATALOGUE)
    before = receiver.evidence()
    receiver.host.send(request)
    assert receiver.evidence() == before


@pytest.mark.parametrize("name", [*DELTAS, *LOGS, *OTHERS])
def test_a_recorded_body_sent_again_changes_nothing(store, name):
    found = recorded()[name]
    receiver = Receiver.of(store, found)
    first = receiver.post(found)
    before = receiver.evidence()
    assert receiver.post(found) == first
    assert first.status == 200
    assert receiver.evidence() == before


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("encoding", list(Encoding))
def test_under_our_ids_the_owner_days_agree_with_the_body(store, name, encoding):
    found = recorded()[name]
    receiver = Receiver.of(store, found)
    request = reissued(found, receiver)
    assert partial_of(receiver.host.send(request, encoding)) == (0, "")
    reported = reported_by(request)
    rows = [row for guard in CATALOGUE for row in receiver.rows(guard)]
    assert sum(row.started for row in rows) == sum(row.ended for row in rows) == reported["prompts"]
    assert sum(row.turns for row in rows) == reported["turns"]
    assert sum(row.tokens for row in rows) == reported["tokens"]


@pytest.mark.parametrize("name", LOGS)
def test_under_our_ids_a_body_counts_once_in_whichever_encoding_it_comes(store, name):
    found = recorded()[name]
    receiver = Receiver.of(store, found)
    request = reissued(found, receiver)
    receiver.host.send(request)
    before = receiver.evidence()
    for encoding in Encoding:
        receiver.host.send(request, encoding)
        receiver.host.post(
            gzip_body(encode_request(request, encoding)),
            content_type=encoding.value,
            content_encoding="gzip",
            is_chunked=True,
        )
    assert receiver.evidence() == before


@pytest.mark.parametrize("name", LOGS)
def test_a_body_that_a_collector_cut_and_shuffled_counts_as_the_whole_one(store, name):
    found = recorded()[name]
    receiver = Receiver.of(store, found)
    request = reissued(found, receiver)
    records = list(reversed(records_of(request)))
    for at in range(0, len(records), 3):
        part = ExportLogsServiceRequest()
        batch = part.resource_logs.add()
        batch.resource.CopyFrom(request.resource_logs[0].resource)
        scope = batch.scope_logs.add()
        scope.scope.CopyFrom(request.resource_logs[0].scope_logs[0].scope)
        scope.log_records.extend(records[at : at + 3])
        assert partial_of(receiver.host.send(part)) == (0, "")
    cut = receiver.evidence()
    receiver.host.send(request)
    assert receiver.evidence() == cut
