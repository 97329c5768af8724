"""What a promotion must say that rests on a comparison of before and after."""

import orjson

from control_plane.commands.refusals import rule_violated
from control_plane.state import Evaluation

# As the result of an evaluation writes it, and as a reason must.
_BEFORE_AFTER = "before_after"
WORDS = "before/after"


def is_before_after(evaluation: Evaluation) -> bool:
    """Whether nobody was held back, so that the metrics compare two periods."""
    told: object = orjson.loads(evaluation.result or "{}").get("comparison")
    return told == _BEFORE_AFTER


def check_reason_says_so(evaluation: Evaluation, reason: str) -> None:
    """Check that the reason admits that two periods were compared, which their change can fool.

    Raises:
        RuleViolated: it does not hold the words "before/after".
    """
    if is_before_after(evaluation) and WORDS not in reason.lower():
        raise rule_violated(
            f"gate evaluation {evaluation.id} compares before and after, which a change of the "
            f'period can fool; say in the reason why you trust it, with the words "{WORDS}"',
            pointer="/reason",
        )
