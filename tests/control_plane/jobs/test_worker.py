"""Workers: each job is done once, a dead worker is replaced, and a fault stops none."""

import threading
from datetime import timedelta

import pytest

from guardwave.control_plane.commands.evaluations import request_evaluation
from guardwave.control_plane.core.state import EvaluationStatus, PromotionStatus
from guardwave.control_plane.jobs import worker
from guardwave.control_plane.jobs.worker import Worker, keep_lease
from guardwave.control_plane.stores.jobs import Job, JobKind
from guardwave.control_plane.stores.keys import EnvironmentKeys, EvidenceKeys
from guardwave.reducer.vocabulary import Gate, Mode
from tests.support.lives import Life
from tests.support.web_workers import PATIENCE_S, until
from tests.support.worlds import ENVIRONMENT, GUARD, OPERATOR


@pytest.fixture
def life(store):
    found = Life.begin(store)
    found.live(2)
    return found


def ask(life: Life) -> int:
    return request_evaluation(life.context, ENVIRONMENT, GUARD, gate=Gate.SHADOW, actor=OPERATOR).id


def expire_lease(life: Life) -> None:
    """Let the lease run out, as five seconds without its holder do."""
    life.store.delete(EnvironmentKeys(ENVIRONMENT).lease)


def test_two_workers_at_once_do_each_job_once(life):
    asked = [ask(life) for _ in range(6)]
    did: list[bool] = []
    barrier = threading.Barrier(2)

    def work(holder: str) -> None:
        worker = Worker(life.context, holder=holder)
        barrier.wait()
        did.extend(worker.run_once() for _ in range(8))

    threads = [threading.Thread(target=work, args=(f"worker-{n}",)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(did) == len(asked)
    assert all(life.evaluation(number).status is EvaluationStatus.DONE for number in asked)


def test_the_holder_of_the_lease_works_and_the_other_waits(life):
    first, second = (Worker(life.context, holder=name) for name in ("one", "two"))
    first.run_once()
    number = ask(life)
    assert not second.run_once()
    assert life.evaluation(number).status is EvaluationStatus.PENDING
    assert first.run_once()


def test_a_dead_workers_job_is_taken_over(life):
    number = ask(life)
    assert life.context.jobs.lease(ENVIRONMENT, "dead") > 0
    assert life.context.jobs.take(ENVIRONMENT) is not None
    expire_lease(life)
    survivor = Worker(life.context, holder="survivor")
    assert survivor.run_once()
    assert life.evaluation(number).status is EvaluationStatus.DONE
    assert not survivor.run_once()


def test_a_worker_that_lost_its_lease_finishes_nothing(life):
    number = ask(life)
    stale = life.context.jobs.lease(ENVIRONMENT, "slow")
    expire_lease(life)
    fence = life.context.jobs.lease(ENVIRONMENT, "next")
    assert fence > stale
    done = life.evaluation(number)
    assert not life.context.gates.finish_evaluation(ENVIRONMENT, done, fence=stale)


def test_a_job_that_lost_its_lease_is_left_to_the_next_holder(life):
    number = ask(life)
    fence = life.context.jobs.lease(ENVIRONMENT, "one")
    with keep_lease(life.context.jobs, ENVIRONMENT, "one"):
        life.context.jobs.take(ENVIRONMENT)
        expire_lease(life)
        assert life.context.jobs.lease(ENVIRONMENT, "two") > fence
    expire_lease(life)
    assert Worker(life.context, holder="three").run_once()
    assert life.evaluation(number).status is EvaluationStatus.DONE


def test_a_lease_is_renewed_while_a_job_runs(life, monkeypatch):
    monkeypatch.setattr(worker, "RENEW_S", 0.001)
    lease = EnvironmentKeys(ENVIRONMENT).lease
    life.context.jobs.lease(ENVIRONMENT, "one")
    life.store.pexpire(lease, 2000)
    with keep_lease(life.context.jobs, ENVIRONMENT, "one"):
        assert until(lambda: int(life.store.pttl(lease)) > 2000)


def test_evidence_that_cannot_be_read_fails_its_evaluation_and_no_other_job(life, caplog):
    number = ask(life)
    day = life.context.evidence.days(ENVIRONMENT)[-1]
    (stratum, *_) = life.context.evidence.strata(ENVIRONMENT)
    key = EvidenceKeys(ENVIRONMENT).owner_days(stratum[0], day, 0)
    life.store.hset(key, "BROKEN", b"\xa1x")
    life.live(7)
    life.work()
    failed = life.evaluation(number)
    assert failed.status is EvaluationStatus.FAILED
    assert "could not be made" in (failed.sentence or "")
    assert "job evaluate" in caplog.text
    life.store.hdel(key, "BROKEN")
    assert life.evaluate().status is EvaluationStatus.DONE


def test_a_promotion_that_cannot_be_carried_out_is_refused_with_words(life, caplog):
    asked = life.ask_promotion(life.within(), Mode.WARN)
    facts = EvidenceKeys(ENVIRONMENT).facts
    name = next(iter(life.context.owners.all_facts(ENVIRONMENT)))
    held = life.store.hget(facts, name)
    life.store.hset(facts, name, "unreadable")
    life.work()
    refused = life.promotion(asked.id)
    assert refused.status is PromotionStatus.REFUSED
    assert "could not be carried out" in (refused.refusal or "")
    assert life.rollout.phase is Mode.SHADOW
    life.store.hset(facts, name, held)
    assert life.promote(Mode.WARN).status is PromotionStatus.DONE


def test_a_job_without_its_request_is_completed(life, caplog):
    life.context.jobs.put(ENVIRONMENT, Job(JobKind.EVALUATE, GUARD, 99))
    life.context.jobs.put(ENVIRONMENT, Job(JobKind.PROMOTE, GUARD, 99))
    life.work()
    assert life.context.jobs.take(ENVIRONMENT) is None


def test_requests_from_before_a_crash_are_done_after_it(life):
    number = ask(life)
    promotion = life.ask_promotion(life.within(), Mode.WARN)
    # The crash came between keeping what was asked for and queueing it.
    life.store.delete(EnvironmentKeys(ENVIRONMENT).jobs)
    expire_lease(life)
    life.work()
    assert life.evaluation(number).status is EvaluationStatus.DONE
    assert life.promotion(promotion.id).status is PromotionStatus.DONE
    assert life.rollout.generation == 2


def test_a_fault_in_one_environment_keeps_no_other_waiting(store, life, caplog):
    other = Life.begin(store, environment="other", calendar=life.calendar)
    number = ask(life)
    broken = EvidenceKeys("other").days
    store.delete(broken)
    store.set(broken, "of another type")
    worker = Worker(life.context, holder="one")
    for _ in range(3):
        worker.run_once()
    assert life.evaluation(number).status is EvaluationStatus.DONE
    assert caplog.text.count("other: what was due could not be done") == 1
    store.delete(broken)
    other.live(1)
    worker.run_once()
    assert not worker._faults


def test_a_worker_runs_until_it_is_stopped(life):
    number = ask(life)
    stop = threading.Event()
    thread = threading.Thread(target=Worker(life.context, holder="one").run, args=(stop,))
    thread.start()
    is_done = until(lambda: life.evaluation(number).status is not EvaluationStatus.PENDING)
    stop.set()
    thread.join(PATIENCE_S)
    assert is_done
    assert not thread.is_alive()


def test_a_worker_seals_each_day_that_passes_and_reads_the_days_once_for_it(life):
    worker = Worker(life.context, holder="one")
    worker.run_once()
    for _ in range(2):
        life.calendar.now += timedelta(days=1)
        yesterday = life.calendar.now.date() - timedelta(days=1)
        worker.run_once()
        assert life.context.evidence.sealed_days(ENVIRONMENT, [yesterday])

        read = day_reads(life)
        worker.run_once()
        assert day_reads(life) == read


def day_reads(life: Life) -> int:
    """Return how often a hash of the store was read whole so far, as sealing reads days."""
    held = life.store.info("commandstats").get("cmdstat_hgetall", {"calls": 0})
    return int(held["calls"])
