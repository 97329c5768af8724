"""What the store is told of refused items: each counts once, in whatever body it comes again."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from hashlib import blake2b

from control_plane.ingest.identity import digest63, origin_identity
from control_plane.ingest.records import (
    CounterPoint,
    DurationPoint,
    FlagEvaluation,
    LoopDetected,
    PromptEvent,
    Record,
    Transition,
)
from control_plane.ingest.rejections import Rejected, RejectReason
from control_plane.ingest.wording_effects import volume_identity
from control_plane.stores.refused_items import RefusedItems

_OF_A_CLOCK = frozenset({RejectReason.LATE, RejectReason.FUTURE})


def word_of(reason: RejectReason) -> str:
    """Return what intake's health counts an item as that was refused for this reason."""
    return "quarantined" if reason.is_quarantine else "refused"


def refused_items(
    rejected: Sequence[Rejected], *, body: bytes, today: date
) -> tuple[RefusedItems, ...]:
    """Group the refused items of a body by version and reason, each with what tells it apart.

    An item that says too little is the same again only in the same body. What has no environment
    or version counts as a record of today that does not conform.
    """
    digests: defaultdict[tuple[str, RejectReason, str], list[int]] = defaultdict(list)
    body_digest, without_content = "", 0
    for each in rejected:
        if each.content is not None:
            fields = [str(each.content)]
        else:
            body_digest = body_digest or blake2b(body, digest_size=16).hexdigest()
            fields = [body_digest, str(without_content)]
            without_content += 1
        instance = each.instance if each.reason in _OF_A_CLOCK else ""
        found = digests[each.version, each.reason, instance]
        found.append(digest63("refused", each.reason, *fields))
    return tuple(
        RefusedItems(
            version,
            f"{word_of(reason)}:{reason}",
            tuple(found),
            today if reason.is_quarantine else None,
            instance,
        )
        for (version, reason, instance), found in digests.items()
    )


def record_identity(record: Record) -> int:
    """Return what makes a record the same again: what would tell it apart if it were accepted.

    That, and the assignment ids that it was refused for.
    """
    if isinstance(record, CounterPoint | DurationPoint):
        identity = record.identity
    else:
        guard = (
            record.guard if isinstance(record, Transition | LoopDetected | FlagEvaluation) else ""
        )
        mode = record.mode if isinstance(record, Transition | FlagEvaluation) else None
        identity = volume_identity(record, guard=guard or "", mode=mode)
    sender = origin_identity(record.origin)
    return digest63("record", str(sender), str(identity), *ids_of(record))


def ids_of(record: Record) -> tuple[str, ...]:
    """Return the assignment ids that a record came under, its own or its Resource's."""
    if isinstance(record, PromptEvent):
        return record.assignment_ids
    return record.origin.assignment_ids
