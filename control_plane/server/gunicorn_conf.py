"""Gunicorn configuration: every name below is a setting of gunicorn's."""

import gc
import os
from pathlib import Path

from guardwave.control_plane.core.settings import Settings

_settings = Settings.from_env(os.environ)
_in_memory = Path("/dev/shm")  # noqa: S108  # gunicorn makes a private file in it

wsgi_app = "guardwave.control_plane.server.wsgi:app"
bind = (
    f"[{_settings.host}]:{_settings.port}"
    if ":" in _settings.host
    else (f"{_settings.host}:{_settings.port}")
)
proc_name = "guardwave"

worker_class = "guardwave.control_plane.server.web_worker.WebWorker"
workers = _settings.workers
threads = 16
# Each worker opens its own connections and starts its own refresher, after the fork.
preload_app = False
# Exporters and hosts keep connections open and send every few seconds.
keepalive = 75
timeout = 30
graceful_timeout = 5
# On a slow disk the heartbeat would be late, and healthy workers killed.
worker_tmp_dir = str(_in_memory) if _in_memory.is_dir() else None

# The longest path is an assignment's: about 500 bytes with an owner id of 256 and a version.
limit_request_line = 2048
limit_request_fields = 64
limit_request_field_size = 8190

# No access log: owner ids are in paths. A proxy that writes one must mask them.
accesslog = None
loglevel = "warning"
control_socket_disable = True


def post_worker_init(worker: object) -> None:  # noqa: ARG001  # gunicorn passes it by position
    """Read the store before the first request; an error ends the worker with a message."""
    from guardwave.control_plane.server.wsgi import worker as this_process

    this_process().start()
    # The objects of now live as long as the process: keep the collector from scanning them.
    gc.collect()
    gc.freeze()
    # A request makes thousands of objects but no cycles: the default of 700 collects in vain.
    gc.set_threshold(50_000, 20, 20)
