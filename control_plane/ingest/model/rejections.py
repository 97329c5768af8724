"""Rejections: items that count for nothing, each with a reason its sender can act on."""

from dataclasses import dataclass

from guardwave.control_plane.core.reject_reasons import IgnoreReason, RejectReason
from guardwave.control_plane.ingest.model.records import ContentLeak

__all__ = ["IgnoreReason", "ItemRejected", "RejectReason", "Rejection", "reject"]


@dataclass(frozen=True, slots=True)
class Rejection:
    """One item that counts for nothing; `detail` names field, value and remedy.

    `version` is the service version of the item's Resource, empty where none is known. `content`
    is a digest of the whole item and of its sender, the same in every body; None where the item
    has too little to distinguish it from another. `instance` is a digest of the sending process,
    empty where none is known. `leak` is the content that the item carried nevertheless.
    """

    reason: RejectReason
    detail: str
    version: str = ""
    content: int | None = None
    instance: str = ""
    leak: ContentLeak | None = None


class ItemRejected(ValueError):
    """Raised to give up one item; the rest of the body goes on."""

    def __init__(self, reason: RejectReason, fault: str) -> None:
        super().__init__(fault)
        self.rejection = reject(reason, fault)


def reject(reason: RejectReason, fault: str) -> Rejection:
    """Return the rejection whose detail is the fault followed by the reason's remedy."""
    return Rejection(reason, f"{fault}; {reason.remedy}")
