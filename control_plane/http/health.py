"""Whether this process is up, and whether its answers can be relied on."""

import orjson
from flask import Blueprint, Response

from control_plane.errors import StoreUnavailable
from control_plane.http.assignments import plane

blueprint = Blueprint("health", __name__)


@blueprint.get("/healthz")
def healthz() -> Response:
    """Say that the process is up; nothing else is asked for."""
    return _json({"status": "up"})


@blueprint.get("/readyz")
def readyz() -> Response:
    """Say how old this worker's snapshot of each environment is.

    Raises:
        StoreUnavailable: nothing above shadow can be answered, for one environment or for all:
            the store is away, or it went back behind what this worker has seen of it.
    """
    refresher = plane().refresher
    refresher.ensure_running()
    snapshot, now = refresher.snapshot, refresher.now()
    trouble = snapshot.trouble(now) or "; ".join(snapshot.faults.values())
    if trouble:
        raise StoreUnavailable(f"answering shadow at most: {trouble}")
    age_seconds = round(now - (snapshot.heard_at or now), 3)
    environments = {
        name: {"revision": held.revision, "age_seconds": age_seconds}
        for name, held in snapshot.environments.items()
    }
    return _json({"status": "ready", "age_seconds": age_seconds, "environments": environments})


def _json(document: dict[str, object]) -> Response:
    response = Response(orjson.dumps(document), mimetype="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response
