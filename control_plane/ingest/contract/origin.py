"""Origin: the sender that a Resource and a scope name, or why their items are rejected."""

from guardwave.control_plane.ingest.contract import limits
from guardwave.control_plane.ingest.contract.fields import assignment_ids, quoted
from guardwave.control_plane.ingest.model.identity import resource_digest
from guardwave.control_plane.ingest.model.otlp_values import Attributes
from guardwave.control_plane.ingest.model.records import Origin
from guardwave.control_plane.ingest.model.rejections import ItemRejected, Rejection, RejectReason
from guardwave.reducer.rollout.invariants import is_overlong


def read_origin(
    attributes: Attributes,
    scope_version: str,
    *,
    contract_version: int | None,
    environment: str,
) -> Origin | Rejection:
    """Return the sender of the items of one Resource and scope.

    `contract_version` is None when no contract is known for the scope's version: that rejects
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
    except ItemRejected as error:
        return error.rejection


def _read(
    attributes: Attributes, scope_version: str, *, contract_version: int | None, environment: str
) -> Origin:
    _check_environment(attributes, environment)
    version = _text(attributes, limits.SERVICE_VERSION)
    if not version:
        raise ItemRejected(RejectReason.VERSION_MISSING, "the Resource has no service.version")
    if is_overlong(version):
        raise ItemRejected(
            RejectReason.BAD_ATTRIBUTE,
            f"service.version is a string of {len(version)} characters and over 128 bytes",
        )
    if contract_version is None:
        raise ItemRejected(
            RejectReason.CONTRACT_UNKNOWN,
            f"the scope's version is {quoted(scope_version)}, which is no known contract",
        )
    instance = _text(attributes, limits.INSTANCE_ID)
    return Origin(
        service_name=_text(attributes, limits.SERVICE_NAME) or limits.UNNAMED_SERVICE,
        service_version=version,
        instance_id=instance or resource_digest(attributes),
        environment=environment,
        contract_version=contract_version,
        assignment_ids=assignment_ids(attributes),
        service_namespace=_text(attributes, limits.SERVICE_NAMESPACE),
        has_weak_identity=not instance,
    )


def _check_environment(attributes: Attributes, environment: str) -> None:
    named = _text(attributes, limits.ENVIRONMENT)
    older = _text(attributes, limits.OLDER_ENVIRONMENT)
    if named and older and named != older:
        raise ItemRejected(
            RejectReason.ENVIRONMENT_CONFLICT,
            f"deployment.environment.name, of {len(named)} characters, and "
            f"deployment.environment, of {len(older)}, differ",
        )
    found = named or older
    if not found:
        raise ItemRejected(
            RejectReason.ENVIRONMENT_MISSING, "the Resource has no deployment.environment.name"
        )
    if found != environment:
        raise ItemRejected(
            RejectReason.ENVIRONMENT_MISMATCH,
            f"the Resource names an environment of {len(found)} characters in "
            f"deployment.environment.name, and the token is of {environment!r}",
        )


def _text(attributes: Attributes, key: str) -> str:
    value = attributes.get(key)
    return value if isinstance(value, str) else ""
