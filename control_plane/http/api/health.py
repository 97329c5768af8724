"""Health: probes that this process is up and that its answers can be relied on."""

import orjson
from flask import Blueprint, Response

from guardwave.control_plane.core.errors import StoreUnavailable
from guardwave.control_plane.http.api.assignments import plane

blueprint = Blueprint("health", __name__)


@blueprint.get("/healthz")
def healthz() -> Response:
    """Answer that the process is up, and check nothing else."""
    return _json({"status": "up"})


@blueprint.get("/readyz")
def readyz() -> Response:
    """Answer the age of this worker's snapshot of each environment.

    Raises:
        StoreUnavailable: for one environment or for all, no answer can be above shadow: the
            store is away, or it has lost revisions that this worker has seen.
    """
    refresher = plane().refresher
    refresher.ensure_running()
    snapshot, now = refresher.snapshot, refresher.now()
    trouble = snapshot.trouble(now) or "; ".join(snapshot.faults.values())
    if trouble:
        raise StoreUnavailable(f"answering shadow at most: {trouble}")
    age_seconds = round(now - (snapshot.read_at or now), 3)
    environments = {
        name: {"revision": held.revision, "age_seconds": age_seconds}
        for name, held in snapshot.environments.items()
    }
    return _json({"status": "ready", "age_seconds": age_seconds, "environments": environments})


def _json(document: dict[str, object]) -> Response:
    response = Response(orjson.dumps(document), mimetype="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response
