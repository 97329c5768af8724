"""Agent hosts: the OTLP requests that they would send, and the door that receives them."""

import gzip
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType

import orjson
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from guardwave.control_plane.core.clock import Clock, to_ns
from guardwave.control_plane.core.otlp_request import Encoding, Limits, OtlpAnswer, OtlpRequest
from guardwave.control_plane.data_plane.credential_cache import CredentialCache
from guardwave.control_plane.ingest.door import Door
from guardwave.control_plane.ingest.intake import Intake
from guardwave.control_plane.ingest.model.otlp_values import Value
from guardwave.control_plane.rollouts.access import create_token
from guardwave.control_plane.rollouts.context import Context
from guardwave.reducer.rollout.assignment import Assignment, issue
from guardwave.reducer.rollout.pseudonym import pseudonym_of
from guardwave.reducer.rollout.state import REFERENCE, TREATED
from guardwave.reducer.vocabulary import Cohort, Mode, Role
from tests.support.otlp.bodies import any_value
from tests.support.worlds import ENVIRONMENT, GUARD, VERSION, environment_of

Request = ExportLogsServiceRequest | ExportMetricsServiceRequest
NONE: Mapping[str, Value] = MappingProxyType({})


class Calendar:
    """A clock whose moment a test sets."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    @property
    def clock(self) -> Clock:
        return Clock(wall_ns=lambda: to_ns(self.now))


@dataclass(frozen=True)
class Event:
    """One log event; no native event may have a `body`."""

    name: str
    at: datetime
    attributes: Mapping[str, Value]
    body: str = ""


@dataclass(frozen=True)
class Prompt:
    """One prompt of an owner, and the events that a host sends for it."""

    prompt_id: str
    ids: Sequence[str]
    at: datetime
    outcome: str = "completed"
    mode: Mode = Mode.SHADOW
    decisions: Sequence[str] = ()
    is_disrupted: bool = False
    turns: int = 5
    tokens: int = 1000
    guard: str = GUARD
    further: Mapping[str, Value] = field(default_factory=dict)

    def start(self) -> Event:
        return Event("agent.guard.prompt.start", self.at, self._common())

    def transitions(self) -> tuple[Event, ...]:
        return tuple(
            self.transition(sequence, decision)
            for sequence, decision in enumerate(self.decisions, start=1)
        )

    def transition(self, sequence: int, decision: str, **changed: Value) -> Event:
        attributes = {
            **self._common(),
            "agent.guard.name": self.guard,
            "agent.guard.mode": self.mode.value,
            "agent.guard.sequence": sequence,
            "agent.guard.candidate.ordinal": 1,
            "agent.guard.decision": decision,
            "agent.guard.batch.complete": True,
            "agent.guard.terminal.status": "error",
            "agent.guard.execution.status": "error",
            **{f"agent.guard.{key.replace('__', '.')}": value for key, value in changed.items()},
        }
        at = self.at + timedelta(seconds=2 * sequence)
        return Event("agent.guard.transition", at, attributes)

    def end(self, **changed: Value) -> Event:
        attributes = {
            **self._common(),
            "agent.guard.prompt.outcome": self.outcome,
            "agent.guard.prompt.duration": 30.0,
            "agent.guard.prompt.turns": self.turns,
            "agent.guard.prompt.tool_calls": 2 * self.turns,
            "agent.guard.prompt.transitions": len(self.decisions),
            "gen_ai.usage.input_tokens": self.tokens - self.tokens // 10,
            "gen_ai.usage.output_tokens": self.tokens // 10,
            "agent.guard.calls_after_would_stop": 0,
            **changed,
        }
        return Event("agent.guard.prompt.end", self.at + timedelta(seconds=30), attributes)

    def disruption(self) -> Event:
        attributes = {
            **self._common(),
            "agent.guard.disruption.kind": "retry",
            "agent.guard.disruption.offset": 20.0,
        }
        return Event("agent.guard.prompt.disruption", self.at + timedelta(seconds=50), attributes)

    def events(self) -> tuple[Event, ...]:
        events = (self.start(), *self.transitions(), self.end())
        return (*events, self.disruption()) if self.is_disrupted else events

    def _common(self) -> dict[str, Value]:
        ids: Value = tuple(self.ids) if len(self.ids) > 1 else self.ids[0] if self.ids else None
        assignment: dict[str, Value] = {} if ids is None else {"agent.guard.assignment.id": ids}
        return {"agent.guard.prompt.id": self.prompt_id, **assignment, **self.further}


def logs(
    events: Iterable[Event],
    *,
    environment: str = ENVIRONMENT,
    version: str = VERSION,
    resource: Mapping[str, Value] = NONE,
) -> ExportLogsServiceRequest:
    """Return the events as one export request of a process."""
    request = ExportLogsServiceRequest()
    batch = request.resource_logs.add()
    attributes = {
        "service.name": "agent-host",
        "service.version": version,
        "service.instance.id": "host-1",
        "deployment.environment.name": environment,
        **resource,
    }
    for key, value in attributes.items():
        batch.resource.attributes.add(key=key, value=any_value(value))
    scope = batch.scope_logs.add()
    scope.scope.name, scope.scope.version = "agent.guard", "1"
    for event in events:
        record = scope.log_records.add(event_name=event.name, time_unix_nano=to_ns(event.at))
        for key, value in event.attributes.items():
            record.attributes.add(key=key, value=any_value(value))
        if event.body:
            record.body.string_value = event.body
    return request


def encode_request(request: Request, encoding: Encoding) -> bytes:
    """Return a request's bytes. It sets no trace id, which protobuf's own JSON writes otherwise."""
    if encoding is Encoding.PROTOBUF:
        return request.SerializeToString()
    return orjson.dumps(MessageToDict(request, use_integers_for_enums=True))


class Host:
    """A host with a token, at the OTLP door of one web worker."""

    def __init__(
        self,
        context: Context,
        *,
        environment: str = ENVIRONMENT,
        is_trusted: bool = True,
        limits: Limits | None = None,
    ) -> None:
        self.context = context
        self.environment = environment
        self.door = Door(Intake(context), CredentialCache(context), limits=limits)
        self.token = create_token(
            context, role=Role.INGEST, environment=environment, is_trusted=is_trusted
        )

    def send(self, request: Request, encoding: Encoding = Encoding.PROTOBUF) -> OtlpAnswer:
        """Send a request to the path of its signal."""
        signal = "logs" if isinstance(request, ExportLogsServiceRequest) else "metrics"
        return self.post(
            encode_request(request, encoding), signal=signal, content_type=encoding.value
        )

    def send_prompts(self, *prompts: Prompt) -> OtlpAnswer:
        """Send all events of these prompts in one body."""
        events = [event for prompt in prompts for event in prompt.events()]
        return self.send(logs(events, environment=self.environment))

    def post(
        self,
        body: bytes,
        *,
        signal: str = "logs",
        content_type: str | None = Encoding.PROTOBUF.value,
        content_encoding: str | None = None,
        is_chunked: bool = False,
        authorization: str | None = "",
    ) -> OtlpAnswer:
        """Send bytes as they are. `authorization` "" is the host's own token."""
        bearer = f"Bearer {self.token}" if authorization == "" else authorization
        return self.door(
            OtlpRequest(
                signal=signal,
                content_type=content_type,
                content_encoding=content_encoding,
                content_length=None if is_chunked else len(body),
                stream=io.BytesIO(body),
                authorization=bearer,
            )
        )


def partial_of(answer: OtlpAnswer, signal: str = "logs") -> tuple[int, str]:
    """Return how many items an answer rejected, and its message; (0, "") for a full success."""
    assert answer.status == 200, answer.body
    if answer.content_type == Encoding.JSON.value:
        partial = orjson.loads(answer.body).get("partialSuccess", {})
        count = partial.get("rejectedLogRecords") or partial.get("rejectedDataPoints") or 0
        return int(count), partial.get("errorMessage", "")
    if signal == "logs":
        of_logs = ExportLogsServiceResponse.FromString(answer.body).partial_success
        return of_logs.rejected_log_records, of_logs.error_message
    of_metrics = ExportMetricsServiceResponse.FromString(answer.body).partial_success
    return of_metrics.rejected_data_points, of_metrics.error_message


def pseudonym_in(context: Context, owner: str, *, environment: str = ENVIRONMENT) -> str:
    """Return an owner's pseudonym."""
    key = environment_of(context, environment).pseudonym_key
    return pseudonym_of(bytes.fromhex(key), owner)


def issue_id(context: Context, assignment: Assignment, *, environment: str = ENVIRONMENT) -> str:
    """Return an assignment id as the environment issues it."""
    key = environment_of(context, environment).tag_key
    return issue(bytes.fromhex(key), environment, assignment)


class Assigner:
    """Assignments of eligible owners by the stored rollout and roster."""

    def __init__(self, context: Context, environment: str, guard: str = GUARD) -> None:
        self._environment = environment_of(context, environment)
        rollout = context.environments.rollout(environment, guard)
        assert rollout is not None
        self._rollout = rollout
        self._treated: frozenset[str] = frozenset()
        self._rest: frozenset[str] = frozenset()
        if rollout.phase.rank > Mode.SHADOW.rank:
            wave = context.environments.wave(environment, guard, rollout.wave)
            assert wave is not None
            roster = context.environments.roster(environment, guard, wave)
            assert roster is not None
            self._treated = frozenset(roster.pseudonyms[: wave.treated])
            self._rest = frozenset(roster.pseudonyms[wave.treated :])

    def of(self, owner: str) -> tuple[Assignment, str]:
        """Return an owner's assignment and its id."""
        rollout = self._rollout
        pseudonym = pseudonym_of(bytes.fromhex(self._environment.pseudonym_key), owner)
        cohort, mode, wave = Cohort.EVERYONE, rollout.phase, rollout.wave
        if rollout.phase.rank > Mode.SHADOW.rank:
            if pseudonym in self._treated:
                cohort = TREATED[rollout.phase]
            else:
                is_rostered = pseudonym in self._rest
                cohort = REFERENCE[rollout.phase] if is_rostered else Cohort.OUTSIDE
                mode = list(Mode)[rollout.phase.rank - 1]
                wave = rollout.wave if is_rostered else 0
        assignment = Assignment(rollout.guard, pseudonym, wave, cohort, mode, rollout.generation)
        key = bytes.fromhex(self._environment.tag_key)
        return assignment, issue(key, self._environment.name, assignment)


def assignment_for(
    context: Context, owner: str, *, environment: str = ENVIRONMENT, guard: str = GUARD
) -> tuple[Assignment, str]:
    """Return an eligible owner's assignment by the store, and its id."""
    return Assigner(context, environment, guard).of(owner)


def gzip_body(body: bytes) -> bytes:
    """Return a compressed body; the same body gives the same bytes."""
    return gzip.compress(body, mtime=0)
