"""What gunicorn serves: `control_plane.wsgi:app`, built once in each worker process."""

import os
import threading
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from control_plane.app import create_app
from control_plane.data_plane import EXTENSION, over
from control_plane.http.otlp import EXTENSION as OTLP_EXTENSION
from control_plane.ingest.door import Door
from control_plane.ingest.intake import Intake
from control_plane.prerouter import PreRouter
from control_plane.settings import Settings
from control_plane.startup import open_context, open_store

_building = threading.Lock()
_built: PreRouter | None = None


def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer one request; importing this module neither needs nor opens a store."""
    return (_built or worker())(environ, start_response)


def worker() -> PreRouter:
    """Return this process's application, built from the environment variables when first asked.

    Raises:
        StartError: the settings or the store cannot be used.
        StoreUnavailable: the store is away.
    """
    global _built  # noqa: PLW0603  # one application a process, as WSGI has it
    with _building:
        if _built is None:
            _built = build(Settings.from_env(os.environ))
    return _built


def build(settings: Settings) -> PreRouter:
    """Return an application over the store that the settings lead to.

    Raises:
        StartError, StoreUnavailable: as `worker`.
    """
    context = open_context(settings, open_store(settings))
    plane = over(context)
    otlp = Door(Intake(context), plane.credentials, limits=settings.otlp_limits)
    flask = create_app(
        context,
        # Not every browser keeps a Secure cookie that came by plain http, even from this machine.
        secure_cookies=not settings.is_loopback,
        otlp_prefix=settings.otlp_prefix,
        extensions={EXTENSION: plane, OTLP_EXTENSION: otlp},
    )
    return PreRouter(flask, plane, otlp, otlp_prefix=settings.otlp_prefix)
