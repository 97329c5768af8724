"""From a Resource and a scope to an origin, or to why their items count for nothing."""

from control_plane.ingest import accepted
from control_plane.ingest.fields import assignment_ids, quoted
from control_plane.ingest.identity import resource_digest
from control_plane.ingest.otlp import Attributes
from control_plane.ingest.records import Origin
from control_plane.ingest.rejections import Refusal, Rejected, RejectReason
from reducer.rollout.invariants import is_overlong


def read_origin(
    attributes: Attributes,
    scope_version: str,
    *,
    contract_version: int | None,
    environment: str,
) -> Origin | Rejected:
    """Return who sent the items of one Resource and scope.

    `contract_version` is None when no contract is known for the scope's version: that refuses
    the items. `environment` is the credential's. A Resource without environment or version, or
    with two environments that differ, is quarantined; one of another environment is rejected.
    """
    try:
        return _read(
            attributes,
            scope_version,
            contract_version=contract_version,
            environment=environment,
        )
    except Refusal as refusal:
        return refusal.rejected


def _read(
    attributes: Attributes, scope_version: str, *, contract_version: int | None, environment: str
) -> Origin:
    _check_environment(attributes, environment)
    version = _text(attributes, accepted.SERVICE_VERSION)
    if not version:
        raise Refusal(RejectReason.VERSION_MISSING, "the Resource has no service.version")
    if is_overlong(version):
        raise Refusal(
            RejectReason.BAD_ATTRIBUTE,
            f"service.version is a string of {len(version)} characters and over 128 bytes",
        )
    if contract_version is None:
        raise Refusal(
            RejectReason.CONTRACT_UNKNOWN,
            f"the scope's version is {quoted(scope_version)}, which is no known contract",
        )
    instance = _text(attributes, accepted.INSTANCE_ID)
    return Origin(
        service_name=_text(attributes, accepted.SERVICE_NAME) or accepted.UNNAMED_SERVICE,
        service_version=version,
        instance_id=instance or resource_digest(attributes),
        environment=environment,
        contract_version=contract_version,
        assignment_ids=assignment_ids(attributes),
        service_namespace=_text(attributes, accepted.SERVICE_NAMESPACE),
        has_weak_identity=not instance,
    )


def _check_environment(attributes: Attributes, environment: str) -> None:
    named = _text(attributes, accepted.ENVIRONMENT)
    older = _text(attributes, accepted.OLDER_ENVIRONMENT)
    if named and older and named != older:
        raise Refusal(
            RejectReason.ENVIRONMENT_CONFLICT,
            f"deployment.environment.name, of {len(named)} characters, and "
            f"deployment.environment, of {len(older)}, differ",
        )
    found = named or older
    if not found:
        raise Refusal(
            RejectReason.ENVIRONMENT_MISSING, "the Resource has no deployment.environment.name"
        )
    if found != environment:
        raise Refusal(
            RejectReason.ENVIRONMENT_MISMATCH,
            f"the Resource names an environment of {len(found)} characters in "
            f"deployment.environment.name, and the token is of {environment!r}",
        )


def _text(attributes: Attributes, key: str) -> str:
    value = attributes.get(key)
    return value if isinstance(value, str) else ""
