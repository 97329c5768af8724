"""Gate evaluations and promotions: numbered, and final once decided."""

from collections.abc import Iterator

from redis import Redis

from control_plane.state import Evaluation, EvaluationStatus, Promotion, PromotionStatus
from control_plane.stores.codec import decode, encode
from control_plane.stores.connection import unavailable
from control_plane.stores.environments import Put
from control_plane.stores.functions import call
from control_plane.stores.keys import EnvironmentKeys
from control_plane.stores.replies import octets, whole

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

    @unavailable()
    def next_evaluation(self, environment: str, guard: str) -> int:
        """Return a new number for an evaluation."""
        return int(self._redis.incr(EnvironmentKeys(environment).evaluation_count(guard)))

    @unavailable()
    def request_evaluation(self, environment: str, evaluation: Evaluation) -> None:
        """Keep a pending evaluation."""
        key = EnvironmentKeys(environment).evaluation(evaluation.guard, evaluation.id)
        self._redis.hset(key, "pending", encode(evaluation))

    @unavailable()
    def finish_evaluation(
        self, environment: str, evaluation: Evaluation, *, fence: int, bundle: bytes | None = None
    ) -> bool:
        """Store the result, and its evidence bundle, for ever.

        False when it was done before or the lease was lost; then nothing is written.
        """
        keys = EnvironmentKeys(environment)
        place = (evaluation.guard, evaluation.id)
        names = (keys.evaluation(*place), keys.lease, keys.bundle(*place))
        arguments = (fence, encode(evaluation), b"" if bundle is None else bundle)
        return bool(whole(call(self._redis, "gw_finish", keys=names, arguments=arguments)))

    @unavailable()
    def bundle_size(self, environment: str, guard: str, number: int) -> int:
        """Return how many bytes the packed evidence bundle has; 0 when there is none."""
        return whole(self._redis.strlen(EnvironmentKeys(environment).bundle(guard, number)))

    def bundle_parts(self, environment: str, guard: str, number: int) -> Iterator[bytes]:
        """Yield the packed evidence bundle of an evaluation, a mebibyte at a time."""
        for start in range(0, self.bundle_size(environment, guard, number), _PART_BYTES):
            yield self._bundle_part(environment, guard, number, start=start)

    @unavailable()
    def _bundle_part(self, environment: str, guard: str, number: int, *, start: int) -> bytes:
        key = EnvironmentKeys(environment).bundle(guard, number)
        return octets(self._redis.getrange(key, start, start + _PART_BYTES - 1))

    @unavailable()
    def evaluation(self, environment: str, guard: str, number: int) -> Evaluation | None:
        """Return one evaluation, None when its number was never given."""
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
        return tuple(each for each in found if each is not None)

    def newest_done(self, environment: str, guard: str) -> Evaluation | None:
        """Return the newest evaluation that is done, looking at the last fifty."""
        for evaluation in self.evaluations(environment, guard):
            if evaluation.status is EvaluationStatus.DONE:
                return evaluation
        return None

    @unavailable()
    def evaluation_count(self, environment: str, guard: str) -> int:
        """Return the highest number given to an evaluation so far."""
        return whole(self._redis.get(EnvironmentKeys(environment).evaluation_count(guard)))

    @unavailable()
    def next_promotion(self, environment: str, guard: str) -> int:
        """Return a new number for a promotion."""
        return int(self._redis.incr(EnvironmentKeys(environment).promotion_count(guard)))

    @unavailable()
    def save_promotion(self, environment: str, promotion: Promotion) -> None:
        """Keep a promotion that waits for the worker, or one that was refused."""
        key = EnvironmentKeys(environment).promotion(promotion.guard, promotion.id)
        self._redis.set(key, encode(promotion))

    @unavailable()
    def promotion(self, environment: str, guard: str, number: int) -> Promotion | None:
        """Return one promotion, None when its number was never given."""
        stored = self._redis.get(EnvironmentKeys(environment).promotion(guard, number))
        return None if stored is None else decode(Promotion, stored)

    def promotions(
        self, environment: str, guard: str, *, before: int | None = None, at_most: int = _NEWEST
    ) -> tuple[Promotion, ...]:
        """Return promotions with a number below `before`, newest first."""
        newest = self._promotion_count(environment, guard) if before is None else before - 1
        numbers = range(newest, max(0, newest - at_most), -1)
        found = (self.promotion(environment, guard, number) for number in numbers)
        return tuple(each for each in found if each is not None)

    @unavailable()
    def pending_promotions(self, environment: str, guard: str) -> tuple[Promotion, ...]:
        """Return every promotion that waits for the worker, oldest first, in two round trips."""
        keys = EnvironmentKeys(environment)
        numbers = range(1, self._promotion_count(environment, guard) + 1)
        if not numbers:
            return ()
        stored = self._redis.mget([keys.promotion(guard, number) for number in numbers])
        found = (decode(Promotion, each) for each in stored if each is not None)
        return tuple(each for each in found if each.status is PromotionStatus.PENDING)

    @unavailable()
    def _promotion_count(self, environment: str, guard: str) -> int:
        return whole(self._redis.get(EnvironmentKeys(environment).promotion_count(guard)))
