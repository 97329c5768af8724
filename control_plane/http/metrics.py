"""What Prometheus scrapes: the series of the environments that its token may see."""

from flask import Blueprint, Response, g, request
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from control_plane.access import may
from control_plane.errors import Forbidden
from control_plane.http.requests import check_caller, context, keep_private
from control_plane.http.series import IntakeSeries
from reducer.vocabulary import Role

blueprint = Blueprint("metrics", __name__)
blueprint.before_request(check_caller)
blueprint.after_request(keep_private)


@blueprint.get("/metrics")
def metrics() -> Response:
    """Return the series in the text format that the caller accepts.

    Raises:
        NotSignedIn: no bearer token, or one that is unknown.
        Forbidden: the token may view no environment.
        StoreUnavailable: the store is away.
    """
    who = g.identity
    seen = tuple(name for name in context().environments.names() if may(who, Role.VIEWER, name))
    if not may(who, Role.VIEWER, None):
        raise Forbidden(f"a token of role {who.role} reads no series; use a viewer's")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(IntakeSeries(context(), seen))
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return Response(encode(registry), content_type=content_type)
