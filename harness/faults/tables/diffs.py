"""Faults of the diff of a turn."""

from harness.faults.base import Fault
from harness.faults.changes import every, first
from harness.faults.item_selectors import item_completed
from harness.faults.operators import drop, edit, edit_by
from harness.faults.queue import FrameQueue
from harness.faults.selectors import Verdict, notification
from harness.faults.site import FaultSite
from harness.protocol.values import obj, text
from harness.trace.frame import Frame

DIFF = "turn/diff/updated"


def followed_by_the_diff(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether the target's next frame is the diff of a turn; None until it comes."""
    following = site.next_from_target(frame)
    return None if following is None else following.method == DIFF


def swap_with_the_diff(queue: FrameQueue, frame: Frame) -> None:
    """Exchange the frame and the diff after it."""
    following = queue.site.next_from_target(frame)
    if following is not None:
        queue.swap(frame, following)


def follows_another_change(site: FaultSite, frame: Frame) -> bool:
    """Return whether an earlier turn had a diff."""
    return _diff_before(site, frame) is not None


def both_diffs(site: FaultSite, frame: Frame) -> str:
    """Return the diff of an earlier turn and this one."""
    return f"{_diff_before(site, frame) or ''}{text(obj(frame.params).get('diff'))}"


def _diff_before(site: FaultSite, frame: Frame) -> str | None:
    turn = obj(frame.params).get("turnId")
    for earlier in site.frames:
        if earlier.method == DIFF and earlier.seq < frame.seq:
            params = obj(earlier.params)
            if params.get("turnId") != turn:
                return text(params.get("diff"))
    return None


FAULTS: tuple[Fault, ...] = (
    Fault(
        "diff-not-told",
        rule="turn.diff-after-change",
        on="file-changes",
        reason="turn/diff/updated follows every fileChange item.",
        change=every(notification(DIFF), drop),
    ),
    Fault(
        "diff-before-the-change",
        rule="turn.diff-after-change",
        on="file-changes",
        reason="turn/diff/updated follows every fileChange item, and one before it does not.",
        change=first(
            item_completed("fileChange").where(followed_by_the_diff, "followed by the diff"),
            swap_with_the_diff,
        ),
    ),
    Fault(
        "diff-of-nothing",
        rule="turn.diff-whole",
        on="file-changes",
        reason="The diff is the unified diff of the whole turn.",
        change=first(notification(DIFF), edit("params", "diff", to="")),
    ),
    Fault(
        "diff-with-the-turn-before",
        rule="turn.diff-own",
        on="changed-in-two-turns",
        reason="The diff is that of the turn, so a change of an earlier turn is not in it.",
        change=every(
            notification(DIFF).where(follows_another_change, "diff of a later turn"),
            edit_by("params", "diff", value=both_diffs),
        ),
    ),
)
