"""Gate evaluations and promotions: numbered records, final once they are decided."""

from collections.abc import Iterator

from redis import Redis

from guardwave.control_plane.core.state import (
    Evaluation,
    EvaluationStatus,
    Promotion,
    PromotionStatus,
)
from guardwave.control_plane.stores.codec import decode, encode
from guardwave.control_plane.stores.environments import Put
from guardwave.control_plane.stores.keys import EnvironmentKeys
from guardwave.control_plane.stores.server import (
    call,
    reply_bytes,
    reply_int,
    translate_store_errors,
)

_NEWEST = 50
_PART_BYTES = 1 << 20


def put_promotion(environment: str, promotion: Promotion) -> Put:
    """Return the write of a promotion, for a commit."""
    key = EnvironmentKeys(environment).promotion(promotion.guard, promotion.id)
    return Put(key, encode(promotion))


class GateStore:
    """Evaluations and promotions of all environments."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @translate_store_errors()
    def next_evaluation(self, environment: str, guard: str) -> int:
        """Return a new number for an evaluation."""
        return int(self._redis.incr(EnvironmentKeys(environment).evaluation_count(guard)))

    @translate_store_errors()
    def request_evaluation(self, environment: str, evaluation: Evaluation) -> None:
        """Keep a pending evaluation."""
        key = EnvironmentKeys(environment).evaluation(evaluation.guard, evaluation.id)
        self._redis.hset(key, "pending", encode(evaluation))

    @translate_store_errors()
    def finish_evaluation(
        self, environment: str, evaluation: Evaluation, *, fence: int, bundle: bytes | None = None
    ) -> bool:
        """Store the result and its evidence bundle for ever.

        Return False, and write nothing, when another result is stored or the lease was lost.
        """
        keys = EnvironmentKeys(environment)
        number = (evaluation.guard, evaluation.id)
        names = (keys.evaluation(*number), keys.lease, keys.bundle(*number))
        arguments = (fence, encode(evaluation), b"" if bundle is None else bundle)
        return bool(reply_int(call(self._redis, "gw_finish", keys=names, arguments=arguments)))

    @translate_store_errors()
    def bundle_size(self, environment: str, guard: str, number: int) -> int:
        """Return the size of the packed evidence bundle in bytes; 0 when there is none."""
        return reply_int(self._redis.strlen(EnvironmentKeys(environment).bundle(guard, number)))

    def bundle_parts(self, environment: str, guard: str, number: int) -> Iterator[bytes]:
        """Yield the packed evidence bundle of an evaluation, a mebibyte at a time."""
        for start in range(0, self.bundle_size(environment, guard, number), _PART_BYTES):
            yield self._bundle_part(environment, guard, number, start=start)

    @translate_store_errors()
    def _bundle_part(self, environment: str, guard: str, number: int, *, start: int) -> bytes:
        key = EnvironmentKeys(environment).bundle(guard, number)
        return reply_bytes(self._redis.getrange(key, start, start + _PART_BYTES - 1))

    @translate_store_errors()
    def evaluation(self, environment: str, guard: str, number: int) -> Evaluation | None:
        """Return one evaluation; None when its number was never used."""
        key = EnvironmentKeys(environment).evaluation(guard, number)
        done, pending = self._redis.hmget(key, ["done", "pending"])
        stored = done if done is not None else pending
        return None if stored is None else decode(Evaluation, stored)

    def evaluations(
        self, environment: str, guard: str, *, before: int | None = None, at_most: int = _NEWEST
    ) -> tuple[Evaluation, ...]:
        """Return evaluations with a number below `before`, newest first."""
        newest = self.evaluation_count(environment, guard) if before is None else before - 1
        numbers = range(newest, max(0, newest - at_most), -1)
        found = (self.evaluation(environment, guard, number) for number in numbers)
        return tuple(evaluation for evaluation in found if evaluation is not None)

    def newest_done(self, environment: str, guard: str) -> Evaluation | None:
        """Return the newest evaluation that is done, among the last fifty."""
        for evaluation in self.evaluations(environment, guard):
            if evaluation.status is EvaluationStatus.DONE:
                return evaluation
        return None

    @translate_store_errors()
    def evaluation_count(self, environment: str, guard: str) -> int:
        """Return the highest number of an evaluation so far."""
        return reply_int(self._redis.get(EnvironmentKeys(environment).evaluation_count(guard)))

    @translate_store_errors()
    def next_promotion(self, environment: str, guard: str) -> int:
        """Return a new number for a promotion."""
        return int(self._redis.incr(EnvironmentKeys(environment).promotion_count(guard)))

    @translate_store_errors()
    def save_promotion(self, environment: str, promotion: Promotion) -> None:
        """Keep a promotion that waits for the worker, or one that was refused."""
        key = EnvironmentKeys(environment).promotion(promotion.guard, promotion.id)
        self._redis.set(key, encode(promotion))

    @translate_store_errors()
    def promotion(self, environment: str, guard: str, number: int) -> Promotion | None:
        """Return one promotion; None when its number was never used."""
        stored = self._redis.get(EnvironmentKeys(environment).promotion(guard, number))
        return None if stored is None else decode(Promotion, stored)

    def promotions(
        self, environment: str, guard: str, *, before: int | None = None, at_most: int = _NEWEST
    ) -> tuple[Promotion, ...]:
        """Return promotions with a number below `before`, newest first."""
        newest = self._promotion_count(environment, guard) if before is None else before - 1
        numbers = range(newest, max(0, newest - at_most), -1)
        found = (self.promotion(environment, guard, number) for number in numbers)
        return tuple(promotion for promotion in found if promotion is not None)

    @translate_store_errors()
    def pending_promotions(self, environment: str, guard: str) -> tuple[Promotion, ...]:
        """Return every promotion that waits for the worker, oldest first, in two round trips."""
        keys = EnvironmentKeys(environment)
        numbers = range(1, self._promotion_count(environment, guard) + 1)
        if not numbers:
            return ()
        stored = self._redis.mget([keys.promotion(guard, number) for number in numbers])
        found = (decode(Promotion, text) for text in stored if text is not None)
        return tuple(
            promotion for promotion in found if promotion.status is PromotionStatus.PENDING
        )

    @translate_store_errors()
    def _promotion_count(self, environment: str, guard: str) -> int:
        return reply_int(self._redis.get(EnvironmentKeys(environment).promotion_count(guard)))
