import threading

import pytest

from guardwave.control_plane.stores.idempotency import (
    KEEP_S,
    RUNNING_S,
    IdempotencyStore,
    PayloadMismatch,
    RequestInProgress,
    StoredAnswer,
)
from guardwave.control_plane.stores.keys import EnvironmentKeys

HERE = "internal"
ANSWER = StoredAnswer(202, '{"Location": "/here"}', b"\x00\xff{}")
KEY = EnvironmentKeys(HERE).idempotency("digest")


@pytest.fixture
def answers(any_store):
    return IdempotencyStore(any_store)


def test_the_same_request_gets_the_same_answer(any_store, answers):
    assert answers.claim(HERE, "digest", "payload") is None
    assert answers.claim(HERE, "digest", "payload") == RequestInProgress()
    answers.keep(HERE, "digest", ANSWER)
    assert answers.claim(HERE, "digest", "payload") == ANSWER
    assert RUNNING_S < any_store.ttl(KEY) <= KEEP_S


def test_a_key_used_for_another_payload_is_reported(answers):
    answers.claim(HERE, "digest", "payload")
    assert answers.claim(HERE, "digest", "another") == PayloadMismatch()
    answers.keep(HERE, "digest", ANSWER)
    assert answers.claim(HERE, "digest", "another") == PayloadMismatch()


def test_a_claim_that_is_never_answered_ends_however_often_it_is_asked_for(any_store, answers):
    for _ in range(3):
        answers.claim(HERE, "digest", "payload")
    assert 0 < any_store.ttl(KEY) <= RUNNING_S


def test_a_failed_request_may_be_sent_again(answers):
    answers.claim(HERE, "digest", "payload")
    answers.release(HERE, "digest")
    assert answers.claim(HERE, "digest", "payload") is None


def test_of_many_that_claim_at_once_one_goes_on(answers):
    together = threading.Barrier(8)
    found: list[object] = []

    def claim() -> None:
        together.wait()
        found.append(answers.claim(HERE, "digest", "payload"))

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.count(None) == 1
    assert found.count(RequestInProgress()) == 7
