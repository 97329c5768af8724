"""The gRPC process: the listener for OTLP over gRPC that `guardwave serve --grpc` starts."""

import logging
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import FrameType

import grpc

from guardwave.control_plane.core.errors import StartError
from guardwave.control_plane.core.otlp_request import Limits, OtlpDoor
from guardwave.control_plane.core.settings import Settings
from guardwave.control_plane.data_plane import DataPlane, build_data_plane
from guardwave.control_plane.ingest.door import Door
from guardwave.control_plane.ingest.grpc_door import GrpcDoor, channel_options
from guardwave.control_plane.ingest.intake import Intake
from guardwave.control_plane.rollouts.context import open_context, open_store
from guardwave.control_plane.stores.jobs import IntakeDoor

THREADS = 16
# The same as `graceful_timeout` in gunicorn_conf.
GRACE_S = 5.0


def listen(door: OtlpDoor, *, host: str, port: int, limits: Limits) -> tuple[grpc.Server, int]:
    """Start a server and return it with its port; port 0 takes a free one.

    A call that waits for a thread is not read yet: HTTP/2's flow control holds its sender back.

    Raises:
        StartError: the address cannot be listened on.
    """
    threads = ThreadPoolExecutor(THREADS, thread_name_prefix="otlp-grpc")
    server = grpc.server(threads, options=channel_options(limits))
    server.add_generic_rpc_handlers((GrpcDoor(door),))
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        bound = server.add_insecure_port(address)
    except RuntimeError as error:
        raise StartError(
            f"{address} cannot be listened on for gRPC; stop what is there, or set "
            "GUARDWAVE_GRPC_PORT or GUARDWAVE_HOST"
        ) from error
    server.start()
    return server, bound


def run(settings: Settings, stop: threading.Event) -> None:
    """Serve until `stop` is set, then let running calls finish.

    Raises:
        StartError, StoreUnavailable: as for a web worker.
    """
    context = open_context(settings, open_store(settings))
    plane: DataPlane = build_data_plane(context, door=IntakeDoor.GRPC)
    # gRPC has one limit for a message, compressed or not.
    limits = replace(settings.otlp_limits, wire_bytes=settings.otlp_limits.inflated_bytes)
    plane.refresher.ensure_running()
    door = Door(Intake(context), plane.credentials, limits=limits)
    server, _ = listen(door, host=settings.host, port=settings.grpc_port, limits=limits)
    stop.wait()
    server.stop(GRACE_S).wait()
    plane.refresher.stop()


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    logging.basicConfig(format="%(levelname)s %(name)s %(message)s", level=logging.INFO)
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    try:
        run(Settings.from_env(os.environ), stop)
    except StartError as error:
        raise SystemExit(f"guardwave: {error}") from error


if __name__ == "__main__":
    main()
