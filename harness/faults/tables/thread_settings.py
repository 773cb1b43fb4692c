"""Faults of a thread's settings and of the transitions of its status."""

from harness.faults.base import Fault
from harness.faults.changes import first, requires
from harness.faults.operators import edit, refuse
from harness.faults.selectors import answer_to, status
from harness.faults.site import FaultSite
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame


def bare_and_not_the_first(site: FaultSite, frame: Frame) -> bool:
    """Return whether the answered request had no params, and another one was answered before."""
    served = [other for other in site.frames if other.seq < frame.seq and site.request_of(other)]
    return not site.params_of(frame) and bool(served)


def of_a_thread_that_stays(site: FaultSite, frame: Frame) -> bool:
    """Return whether an answer shows a thread of this client that no turn/start gave a cwd."""
    thread_id = text(dig(frame.result, "thread", "id"))
    moved = any(
        other.method == "turn/start"
        and "cwd" in obj(other.params)
        and obj(other.params).get("threadId") == thread_id
        for other in site.frames
    )
    return bool(site.is_our_thread(thread_id)) and not moved


def after_idle(site: FaultSite, frame: Frame) -> bool:
    """Return whether the thread of a notification was idle before."""
    thread = site.conversation.thread(text(obj(frame.params).get("threadId")))
    earlier = [status for status in thread.statuses if status.seq < frame.seq]
    return any(dig(status_frame.params, "status", "type") == "idle" for status_frame in earlier)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "bare-thread-refused",
        rule="thread.start-without-params",
        on="bare-thread",
        reason="All params of thread/start are optional.",
        change=first(
            answer_to("thread/start").where(
                bare_and_not_the_first, "without params, after another answer"
            ),
            refuse("missing field cwd"),
        ),
    ),
    Fault(
        "thread-read-in-another-folder",
        rule="thread.cwd-captured",
        on="bare-thread",
        reason="The working directory of a thread is the one that was captured for it.",
        change=first(
            answer_to("thread/read").where(
                of_a_thread_that_stays, "of a thread that no turn moved"
            ),
            edit("result", "thread", "cwd", to="/somewhere/else"),
        ),
    ),
    Fault(
        "status-moves-beside-the-table",
        rule="status.known-move",
        on="two-turns-read",
        reason="The text does not show the moves; from notLoaded our table has none to active.",
        change=first(status("idle"), edit("params", "status", to={"type": "notLoaded"})),
        condition=requires(status("active").where(after_idle, "after idle")),
    ),
)
