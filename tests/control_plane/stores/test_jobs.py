import threading
from datetime import UTC, datetime

import pytest

from guardwave.control_plane.core.state import SYSTEM, Evaluation, EvaluationStatus
from guardwave.control_plane.stores.gates import GateStore
from guardwave.control_plane.stores.jobs import LEASE_MS, IntakeDoor, Job, JobKind, JobStore
from guardwave.control_plane.stores.keys import EnvironmentKeys
from guardwave.reducer.vocabulary import Gate

HERE = "internal"
AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
FIRST, SECOND = (Job(JobKind.EVALUATE, "identical_call", number) for number in (1, 2))


@pytest.fixture
def jobs(any_store):
    return JobStore(any_store)


@pytest.fixture
def expire(any_store):
    """Let the lease run out now, as 5 seconds without a renewal would."""
    return lambda: any_store.pexpireat(EnvironmentKeys(HERE).lease, 1)


def test_one_holds_the_lease_and_renews_it(any_store, jobs):
    fence = jobs.lease(HERE, "one")
    assert fence > 0
    assert jobs.lease(HERE, "other") == 0
    any_store.pexpire(EnvironmentKeys(HERE).lease, 50_000)
    assert jobs.lease(HERE, "one") == fence
    assert 0 < any_store.pttl(EnvironmentKeys(HERE).lease) <= LEASE_MS


def test_the_fence_grows_with_every_new_holder(jobs, expire):
    fences = []
    for holder in ("one", "other", "one"):
        fences.append(jobs.lease(HERE, holder))
        expire()
    assert fences == sorted(set(fences))
    assert 0 not in fences


def test_of_many_that_ask_at_once_one_gets_the_lease(jobs):
    together = threading.Barrier(8)
    fences: list[int] = []

    def ask(holder: str) -> None:
        together.wait()
        fences.append(jobs.lease(HERE, holder))

    threads = [threading.Thread(target=ask, args=(f"worker {at}",)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(fences)[:-1] == [0] * 7
    assert max(fences) > 0


def test_environments_are_leased_apart(jobs):
    assert jobs.lease(HERE, "one") > 0
    assert jobs.lease("public-cloud", "other") > 0


def done(number: int, verdict: str) -> Evaluation:
    return Evaluation(
        number, "identical_call", Gate.WARN, AT, SYSTEM, EvaluationStatus.DONE, verdict=verdict
    )


def test_a_worker_that_lost_its_lease_cannot_finish(any_store, jobs, expire):
    gates = GateStore(any_store)
    old = jobs.lease(HERE, "one")
    expire()
    assert not gates.finish_evaluation(HERE, done(1, "within"), fence=old), "nobody holds it"
    new = jobs.lease(HERE, "other")
    assert not gates.finish_evaluation(HERE, done(1, "within"), fence=old)
    assert gates.evaluation(HERE, "identical_call", 1) is None
    assert gates.finish_evaluation(HERE, done(1, "unproven"), fence=new)


def test_a_result_is_for_ever_and_storing_it_again_is_no_error(any_store, jobs):
    gates = GateStore(any_store)
    fence = jobs.lease(HERE, "one")
    assert gates.finish_evaluation(HERE, done(1, "unproven"), fence=fence)
    assert gates.finish_evaluation(HERE, done(1, "unproven"), fence=fence)
    assert not gates.finish_evaluation(HERE, done(1, "within"), fence=fence)
    stored = gates.evaluation(HERE, "identical_call", 1)
    assert stored is not None
    assert stored.verdict == "unproven"


def test_jobs_are_done_in_the_order_they_came(jobs):
    for job in (FIRST, SECOND):
        jobs.put(HERE, job)
    for job in (FIRST, SECOND):
        assert jobs.take(HERE) == job
        jobs.complete(HERE, job)
    assert jobs.take(HERE) is None


def test_a_job_that_a_dead_worker_had_taken_is_taken_first(jobs):
    for job in (FIRST, SECOND):
        jobs.put(HERE, job)
    assert jobs.take(HERE) == FIRST
    # It dies; the next one need not know.
    assert jobs.take(HERE) == FIRST
    jobs.complete(HERE, FIRST)
    assert jobs.take(HERE) == SECOND


@pytest.mark.parametrize(
    ("beats", "interval", "outage"),
    [
        pytest.param(range(0, 200, 20), (0, 180), 20, id="no outage"),
        pytest.param(range(7, 200, 20), (7, 180), 20, id="out of step with the interval"),
        pytest.param([0, 20, 60, 80], (0, 80), 40, id="one beat missed"),
        pytest.param([0, 5, 20, 39], (0, 39), 19, id="a worker that began in between"),
        pytest.param([0, 418], (0, 418), 418, id="the whole time between two beats"),
        pytest.param([0, 100, 120], (60, 120), 100, id="over the start: counted whole"),
        pytest.param([60, 80, 400], (60, 120), 320, id="over the end: counted whole"),
        pytest.param([0, 500], (60, 120), 500, id="over both"),
        pytest.param([40, 60], (40, 50), 20, id="an interval between two beats"),
        pytest.param([100, 120], (60, 120), 40, id="from the start when there was none before"),
        pytest.param([60, 80], (60, 120), 920, id="until now when there was none after"),
        pytest.param([120], (60, 120), None, id="the end is not of the interval"),
        pytest.param([], (0, 180), None, id="nothing shows that intake was up"),
    ],
)
def test_an_outage_is_the_time_between_two_heartbeats(jobs, beats, interval, outage):
    for second in beats:
        jobs.beat(HERE, second)
    assert jobs.longest_outage(HERE, *interval, now=1000) == outage


DAY_S = 86_400
HTTP = range(DAY_S, 2 * DAY_S + 20, 20)


@pytest.mark.parametrize(
    ("beats", "outage"),
    [
        pytest.param([], 20, id="never opened"),
        pytest.param(range(0, DAY_S, 20), 20, id="not opened on the day"),
        pytest.param(range(0, 3 * DAY_S, 20), 20, id="open all the time"),
        pytest.param(range(DAY_S + 3600, 3 * DAY_S, 20), 20, id="opened for the first time"),
        pytest.param([*range(0, 2 * DAY_S, 20), 4 * DAY_S], 2 * DAY_S + 20, id="closed at its end"),
        pytest.param([DAY_S, DAY_S + 3600, 2 * DAY_S], DAY_S - 3600, id="down for hours"),
        pytest.param([DAY_S - 3600, DAY_S + 7200, 2 * DAY_S], DAY_S - 7200, id="down at midnight"),
        pytest.param([DAY_S, DAY_S + 60], 4 * DAY_S - 60, id="down until now"),
    ],
)
def test_an_outage_of_grpc_counts_on_a_day_on_which_it_was_opened(jobs, any_store, beats, outage):
    any_store.zadd(EnvironmentKeys(HERE).heartbeats, {str(at): at for at in HTTP})
    if beats:
        any_store.zadd(EnvironmentKeys(HERE).grpc_heartbeats, {str(at): at for at in beats})
    assert jobs.longest_outage(HERE, DAY_S, 2 * DAY_S, now=5 * DAY_S) == outage


def test_a_heartbeat_over_grpc_is_none_over_http(jobs):
    jobs.beat(HERE, 60, door=IntakeDoor.GRPC)
    assert jobs.longest_outage(HERE, 0, 120, now=1000) is None
    jobs.beat(HERE, 60)
    jobs.beat(HERE, 130)
    assert jobs.longest_outage(HERE, 0, 120, now=1000) == 940


def test_heartbeats_are_forgotten_after_three_days(any_store, jobs):
    jobs.beat(HERE, 0)
    jobs.beat(HERE, 3 * 86_400)
    assert any_store.zcard(EnvironmentKeys(HERE).heartbeats) == 1
