"""Errors: every error that guardwave raises on purpose, each leaf with code, status and title."""

import traceback
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

NOTHING: Mapping[str, object] = MappingProxyType({})


class GuardwaveError(Exception):
    """An error that the caller can act on.

    The message gives the cause, the numbers and the remedy. `code` is kebab-case and names the
    problem type; `status` is the HTTP status; `extras` are the further members of the
    problem document (RFC 9457, 3.2), such as `errors`, `current_etag` or `retry_after_s`.
    """

    code: ClassVar[str] = "internal-error"
    status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal error"

    def __init__(self, message: str, *, extras: Mapping[str, object] = NOTHING) -> None:
        super().__init__(message)
        self.extras = MappingProxyType(dict(extras))


def trace_of(error: BaseException) -> str:
    """Return the type and the frames of a fault, for a log.

    The message is left out: it may repeat what a client sent.
    """
    frames = "".join(traceback.format_tb(error.__traceback__))
    return f"{type(error).__name__}\n{frames}"


class FieldProblem(NamedTuple):
    """One refused member of a body: a JSON pointer (RFC 6901) and what is wrong with it."""

    pointer: str
    detail: str


class BadRequest(GuardwaveError):
    """The request cannot be read at all."""

    code = "bad-request"
    status = 400
    title = "Bad request"


class InvalidField(GuardwaveError):
    """Members of the request do not fit the schema."""

    code = "invalid-field"
    status = 400
    title = "Invalid field"

    def __init__(self, message: str, *, pointer: str, further: Iterable[FieldProblem] = ()) -> None:
        problems = (FieldProblem(pointer, message), *further)
        super().__init__(message, extras={"errors": [item._asdict() for item in problems]})


class NotSignedIn(GuardwaveError):
    """No credential, or one that is unknown or revoked."""

    code = "not-signed-in"
    status = 401
    title = "Not signed in"


class Forbidden(GuardwaveError):
    """The credential is good and its role or environment does not allow this."""

    code = "forbidden"
    status = 403
    title = "Forbidden"


class NotFound(GuardwaveError):
    """No such resource."""

    code = "not-found"
    status = 404
    title = "Not found"


class MethodNotAllowed(GuardwaveError):
    """The resource exists and does not know this method."""

    code = "method-not-allowed"
    status = 405
    title = "Method not allowed"


class NotAcceptable(GuardwaveError):
    """None of the media types the client accepts can be produced."""

    code = "not-acceptable"
    status = 406
    title = "Not acceptable"


class StateConflict(GuardwaveError):
    """The request is valid and conflicts with the present state."""

    code = "state-conflict"
    status = 409
    title = "Conflict with the present state"


class GateRequired(StateConflict):
    """A mode would rise and no gate evaluation is named."""

    code = "gate-required"
    title = "A gate evaluation is required"


class WaveFrozenField(StateConflict):
    """The field was frozen when the running wave opened."""

    code = "wave-frozen-field"
    title = "Field is frozen by the running wave"


class StepSkipped(StateConflict):
    """The mode asked for is more than one step up the ladder."""

    code = "step-skipped"
    title = "A step of the ladder would be skipped"


class Latched(StateConflict):
    """An automatic rollback holds the environment in shadow."""

    code = "latched"
    title = "The environment is latched"


class EvaluationStale(StateConflict):
    """The gate evaluation is too old, of another generation or policy, or contradicted."""

    code = "evaluation-stale"
    title = "The gate evaluation is stale"


class HarmAlarm(StateConflict):
    """A look for harm in the running wave raised an alarm."""

    code = "harm-alarm"
    title = "A look for harm raised an alarm"


class IdempotencyInProgress(StateConflict):
    """A request with the same Idempotency-Key is still running."""

    code = "idempotency-in-progress"
    title = "The same request is still running"


class PreconditionFailed(GuardwaveError):
    """`If-Match` names another state than the present one."""

    code = "precondition-failed"
    status = 412
    title = "Precondition failed"

    def __init__(self, message: str, *, current_etag: str) -> None:
        super().__init__(message, extras={"current_etag": current_etag})


class BodyTooLarge(GuardwaveError):
    """The body is over the limit, on the wire or inflated."""

    code = "body-too-large"
    status = 413
    title = "Body too large"


class UnsupportedMediaType(GuardwaveError):
    """The content type or content encoding is not known here."""

    code = "unsupported-media-type"
    status = 415
    title = "Unsupported media type"


class RuleViolated(GuardwaveError):
    """The body fits the schema and breaks a rule of the domain or the policy."""

    code = "rule-violated"
    status = 422
    title = "A rule is violated"


class IdempotencyConflict(GuardwaveError):
    """An Idempotency-Key was used again with another payload."""

    code = "idempotency-conflict"
    status = 422
    title = "Idempotency-Key was used for another payload"


class PreconditionRequired(GuardwaveError):
    """The write needs `If-Match` and has none."""

    code = "precondition-required"
    status = 428
    title = "Precondition required"

    def __init__(self, message: str, *, current_etag: str) -> None:
        super().__init__(message, extras={"current_etag": current_etag})


class StoreUnavailable(GuardwaveError):
    """The store is away, loading, full or read-only; every single write is whole or missing.

    Telemetry is written in batches: records of a written batch count once when they come again.
    Retry-After is one second, because OTLP clients drop a batch whose Retry-After exceeds their own
    deadline.
    """

    code = "store-unavailable"
    status = 503
    title = "The store is unavailable"

    def __init__(self, message: str) -> None:
        super().__init__(message, extras={"retry_after_s": 1})


class BodyTooSlow(GuardwaveError):
    """The body came too slowly; none of it is used, and the client may send it again."""

    code = "body-too-slow"
    status = 503
    title = "The body came too slowly"

    def __init__(self, message: str) -> None:
        super().__init__(message, extras={"retry_after_s": 1})


class StartError(GuardwaveError):
    """A process cannot start; the command line prints the message and ends with `exit_code`."""

    code = "start-error"
    title = "Cannot start"
    exit_code: ClassVar[int] = 1


class SettingsError(StartError):
    """An environment variable has an unusable value."""

    code = "settings-error"
    title = "Unusable setting"

    def __init__(self, variable: str, value: str, remedy: str) -> None:
        super().__init__(f"{variable}={value!r} cannot be used: {remedy}")


class StoreStartError(StartError):
    """The store cannot be found, started or used."""

    code = "store-start-error"
    title = "The store cannot start"
