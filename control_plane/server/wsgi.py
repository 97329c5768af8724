"""WSGI application: `app`, which gunicorn serves, built once in each worker process."""

import os
import threading
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.data_plane import EXTENSION, build_data_plane
from guardwave.control_plane.http.api.otlp import EXTENSION as OTLP_EXTENSION
from guardwave.control_plane.ingest.door import Door
from guardwave.control_plane.ingest.intake import Intake
from guardwave.control_plane.rollouts.context import open_context, open_store
from guardwave.control_plane.server.app import create_app
from guardwave.control_plane.server.prerouter import PreRouter

_building = threading.Lock()
_built: PreRouter | None = None


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer one request. Importing this module opens no store."""
    return (_built or worker())(environ, start_response)


def worker() -> PreRouter:
    """Return this process's application; the first call builds it from environment variables.

    Raises:
        StartError: the settings or the store cannot be used.
        StoreUnavailable: the store is away.
    """
    global _built  # noqa: PLW0603  # one application for each process
    with _building:
        if _built is None:
            _built = build(Settings.from_env(os.environ))
    return _built


def build(settings: Settings) -> PreRouter:
    """Return an application over the store that the settings name.

    Raises:
        StartError, StoreUnavailable: as `worker`.
    """
    context = open_context(settings, open_store(settings))
    plane = build_data_plane(context)
    otlp = Door(Intake(context), plane.credentials, limits=settings.otlp_limits)
    flask = create_app(
        context,
        # Some browsers drop a Secure cookie that came by plain http, even from this machine.
        secure_cookies=not settings.is_loopback,
        otlp_prefix=settings.otlp_prefix,
        extensions={EXTENSION: plane, OTLP_EXTENSION: otlp},
    )
    return PreRouter(flask, plane, otlp, otlp_prefix=settings.otlp_prefix)
