"""Faults of archiving and restoring a thread."""

from harness.faults.base import Fault
from harness.faults.changes import every, first
from harness.faults.operators import drop, edit
from harness.faults.selectors import Selector, Verdict, answer_to, notification
from harness.faults.site import FaultSite
from harness.protocol.values import obj, text
from harness.trace.frame import Frame

ARCHIVE = "thread/archive"
UNARCHIVE = "thread/unarchive"


def told_of_our_thread(method: str) -> Selector:
    """Select a notification about a thread that this client started."""

    def ours(site: FaultSite, frame: Frame) -> Verdict:
        return site.is_our_thread(text(obj(frame.params).get("threadId")))

    return notification(method).where(ours, "of a thread of ours")


FAULTS: tuple[Fault, ...] = (
    Fault(
        "archive-answered-with-null",
        rule="archive.reply-empty",
        on="archived",
        reason="The result of thread/archive is {}, not null.",
        change=first(answer_to(ARCHIVE), edit("result", to=None)),
    ),
    Fault(
        "archive-answered-with-members",
        rule="archive.reply-empty",
        on="archived",
        reason="The result of thread/archive is {}; more than that is recorded.",
        change=first(answer_to(ARCHIVE), edit("result", "archived", to=True)),
    ),
    Fault(
        "archived-in-silence",
        rule="archive.told",
        on="archived",
        reason="thread/archive emits thread/archived.",
        change=every(told_of_our_thread("thread/archived"), drop),
    ),
    Fault(
        "another-thread-archived",
        rule="archive.told",
        on="archived",
        reason="The thread that is told to be archived is the one that was archived.",
        change=every(
            told_of_our_thread("thread/archived"), edit("params", "threadId", to="thr_987654321")
        ),
    ),
    Fault(
        "unarchived-in-silence",
        rule="unarchive.told",
        on="archived",
        reason="thread/unarchive emits thread/unarchived.",
        change=every(notification("thread/unarchived"), drop),
    ),
    Fault(
        "another-thread-restored",
        rule="unarchive.restored-thread",
        on="archived",
        reason="thread/unarchive returns the restored thread.",
        change=first(answer_to(UNARCHIVE), edit("result", "thread", "id", to="thr_987654321")),
    ),
)
