"""Faults of names, of unsubscribing, and of the list of loaded threads."""

from harness.faults.base import Condition, Fault
from harness.faults.changes import every, first
from harness.faults.operators import drop, edit, edit_by, insert_by
from harness.faults.selectors import Selector, Verdict, answer_to, notification
from harness.faults.site import FaultSite
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame
from harness.trace.trace import Trace

NAME = "thread/name/set"
UNSUBSCRIBE = "thread/unsubscribe"
LOADED_LIST = "thread/loaded/list"
CLOSED = "thread/closed"


def left_with(word: str) -> Selector:
    """Select an answer to thread/unsubscribe with this status."""
    return answer_to(UNSUBSCRIBE).where(
        lambda _, f: dig(f.result, "status") == word, f"that says {word}"
    )


def shows_our_name(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether an answer shows the name that was set last."""
    set_last = [other for other in site.frames if other.method == NAME and other.seq < frame.seq]
    name = text(dig(frame.result, "thread", "name"))
    return bool(set_last) and bool(name) and obj(set_last[-1].params).get("name") == name


def closed_of_the_thread(site: FaultSite, frame: Frame) -> object:
    """Return thread/closed for the thread that a request named."""
    thread_id = site.params_of(frame).get("threadId")
    return {"method": CLOSED, "params": {"threadId": thread_id}}


def first_of_ours(site: FaultSite) -> str:
    """Return the id of the first thread that this client started, "" if there is none."""
    threads = site.conversation.threads.values()
    return next((thread.id for thread in threads if thread.reply is not None), "")


def lists_ours(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether the first thread of this client is in a list."""
    return first_of_ours(site) in arr(dig(frame.result, "data"))


def without_ours(site: FaultSite, frame: Frame) -> object:
    """Return the list without the first thread of this client."""
    return [entry for entry in arr(dig(frame.result, "data")) if entry != first_of_ours(site)]


def was_closed(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether a list after a thread/closed lacks the first thread of this client."""
    closed = [other for other in site.frames if other.method == CLOSED and other.seq < frame.seq]
    return bool(closed) and first_of_ours(site) not in arr(dig(frame.result, "data"))


def with_ours(site: FaultSite, frame: Frame) -> object:
    """Return the list with the first thread of this client."""
    return [*arr(dig(frame.result, "data")), first_of_ours(site)]


def two_clients(trace: Trace) -> bool:
    """Return whether this client opened a thread that it did not start."""
    site = FaultSite.of_trace(trace)
    return any(
        thread.opening_answers and not thread.reply for thread in site.conversation.threads.values()
    )


FAULTS: tuple[Fault, ...] = (
    Fault(
        "name-answered-with-null",
        rule="name.reply-empty",
        on="named",
        reason="The result of thread/name/set is {}, not null.",
        change=first(answer_to(NAME), edit("result", to=None)),
    ),
    Fault(
        "name-answered-with-members",
        rule="name.reply-empty",
        on="named",
        reason="The result of thread/name/set is {}; more than that is recorded.",
        change=first(answer_to(NAME), edit("result", "name", to="one")),
    ),
    Fault(
        "named-in-silence",
        rule="name.told",
        on="named",
        reason="thread/name/updated is emitted when a name changes.",
        change=every(notification("thread/name/updated"), drop),
    ),
    Fault(
        "shown-with-another-name",
        rule="name.shown",
        on="named",
        reason="thread/name/set sets the name of the thread.",
        change=first(
            answer_to("thread/read").where(shows_our_name, "that shows the name"),
            edit("result", "thread", "name", to="nobody said this"),
        ),
    ),
    Fault(
        "closed-in-silence",
        rule="loading.closed-told",
        on="left",
        reason="A thread is unloaded when its last subscriber left, and thread/closed is emitted.",
        change=every(notification(CLOSED), drop),
    ),
    Fault(
        "closed-while-another-follows",
        rule="loading.kept-for-others",
        on="left-by-one",
        reason="thread/closed says that no subscribers are left.",
        change=first(left_with("unsubscribed"), insert_by(closed_of_the_thread)),
        condition=Condition("client that came second", two_clients),
    ),
    Fault(
        "not-subscribed-though-it-was",
        rule="unsubscribe.words",
        on="left",
        reason="A client that opened the thread is subscribed to it.",
        change=first(left_with("unsubscribed"), edit("result", "status", to="notSubscribed")),
    ),
    Fault(
        "unsubscribed-a-second-time",
        rule="unsubscribe.words",
        on="left",
        reason="Nobody who has left a thread can be unsubscribed from it.",
        change=first(left_with("notLoaded"), edit("result", "status", to="unsubscribed")),
    ),
    Fault(
        "loaded-and-not-listed",
        rule="loaded.lists-loaded",
        on="left",
        reason="thread/loaded/list has the ids of the threads in memory.",
        change=first(
            answer_to(LOADED_LIST).where(lists_ours, "with a thread of ours"),
            edit_by("result", "data", value=without_ours),
        ),
    ),
    Fault(
        "closed-and-still-listed",
        rule="loaded.lists-loaded",
        on="left",
        reason="A thread that was unloaded is not in memory.",
        change=first(
            answer_to(LOADED_LIST).where(was_closed, "after our thread was closed"),
            edit_by("result", "data", value=with_ours),
        ),
    ),
)
