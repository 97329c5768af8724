"""How gunicorn runs the web workers; every name below is a setting of gunicorn's."""

import gc
import os
from pathlib import Path

from control_plane.settings import Settings

_settings = Settings.from_env(os.environ)
_in_memory = Path("/dev/shm")  # noqa: S108  # gunicorn makes a private file in it

wsgi_app = "control_plane.wsgi:app"
bind = (
    f"[{_settings.host}]:{_settings.port}"
    if ":" in _settings.host
    else (f"{_settings.host}:{_settings.port}")
)
proc_name = "guardwave"

worker_class = "control_plane.web_worker.WebWorker"
workers = _settings.workers
threads = 16
# Each worker opens its own connections and starts its own refresher, after the fork.
preload_app = False
# Exporters and hosts keep connections open and ask every few seconds.
keepalive = 75
timeout = 30
graceful_timeout = 5
# A heartbeat on a slow disk would have healthy workers killed.
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
    """Read the store before the first request is taken; errors end the worker with words."""
    from control_plane.wsgi import worker as this_process

    this_process().start()
    # What is there now stays for ever: collections need not look at it again.
    gc.collect()
    gc.freeze()
    # A request makes thousands of objects and no cycles: looking for them every 700 is in vain.
    gc.set_threshold(50_000, 20, 20)
