"""Entity tags: those of rollouts and environments, and the preconditions that use them."""

from hashlib import sha256

from guardwave.control_plane.core.errors import BadRequest, PreconditionFailed, PreconditionRequired
from guardwave.control_plane.core.state import Environment
from guardwave.reducer.rollout.state import Rollout


def rollout_etag(rollout: Rollout) -> str:
    """Return the rollout's strong ETag: an opaque hash that moves with the generation."""
    return _etag("rollout", rollout.environment, rollout.guard, str(rollout.generation))


def environment_etag(environment: Environment) -> str:
    """Return the environment's strong ETag: an opaque hash that moves with the revision."""
    return _etag("environment", environment.name, str(environment.revision))


def _etag(*parts: str) -> str:
    return f'"{sha256("|".join(parts).encode()).hexdigest()[:24]}"'


def check_precondition(if_match: str | None, current: str, *, is_required: bool) -> None:
    """Check `If-Match` wherever it is sent, and demand it where it is required (RFC 9110).

    Raises:
        PreconditionRequired: it is required and was not sent.
        BadRequest: it is `*` or weak, and would match a state that the caller has not seen.
        PreconditionFailed: it names another state than the present one.
    """
    if if_match is None:
        if is_required:
            raise PreconditionRequired(
                f"this write needs If-Match with the present ETag, {current}", current_etag=current
            )
        return
    if if_match == "*" or if_match.startswith("W/"):
        raise BadRequest(f"If-Match takes one strong ETag such as {current}, not {if_match}")
    tags = {tag.strip() for tag in if_match.split(",")}
    if current not in tags:
        raise PreconditionFailed(
            f"something changed: the present ETag is {current}, not {if_match}; read it again and "
            "decide again",
            current_etag=current,
        )
