"""How intake gives up an item: the reason, and which field, which value, what to do."""

from dataclasses import dataclass

from control_plane.reject_reasons import IgnoreReason, RejectReason

__all__ = ["IgnoreReason", "Refusal", "RejectReason", "Rejected", "reject"]


@dataclass(frozen=True, slots=True)
class Rejected:
    """One item that counts for nothing: the reason, and which field, which value, what to do.

    `version` is the service version of the Resource that it came with, empty where none is known.
    `content` is a digest of all that the item says and of who sent it, the same in whichever body
    it comes; None where it says too little to be told from another. `instance` is a digest of the
    process that sent it, empty where none is known.
    """

    reason: RejectReason
    detail: str
    version: str = ""
    content: int | None = None
    instance: str = ""


class Refusal(ValueError):
    """Raised within a decoder to give up one item; the rest of the body goes on."""

    def __init__(self, reason: RejectReason, fault: str) -> None:
        super().__init__(fault)
        self.rejected = reject(reason, fault)


def reject(reason: RejectReason, fault: str) -> Rejected:
    """Return the rejection whose detail is the fault followed by the reason's remedy."""
    return Rejected(reason, f"{fault}; {reason.remedy}")
