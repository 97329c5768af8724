"""Leases that outlast the work done under them: a large gate takes longer than a lease lasts."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from control_plane.errors import StoreUnavailable
from control_plane.stores.jobs import LEASE_MS, JobStore

RENEW_S = LEASE_MS / 3000


@contextmanager
def lease_kept(jobs: JobStore, environment: str, holder: str) -> Iterator[None]:
    """Renew an environment's lease, which `holder` has, until the work is done."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(RENEW_S):
            with suppress(StoreUnavailable):
                jobs.lease(environment, holder)

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
