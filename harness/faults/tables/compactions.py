"""Faults of a compaction that the client requested."""

from harness.faults.base import Condition, Fault
from harness.faults.changes import every, first
from harness.faults.operators import drop, edit, edit_by
from harness.faults.selectors import Selector, Verdict, answer_to
from harness.faults.site import FaultSite
from harness.protocol.values import dig, obj
from harness.trace.frame import Frame, Kind
from harness.trace.trace import Trace

COMPACT = "thread/compact/start"


def compaction_answered(site: FaultSite, frame: Frame) -> Frame | None:
    """Return the first answer to thread/compact/start before a frame."""
    answers = (other for other in site.frames if answer_to(COMPACT).fits(site, other))
    answer = next(answers, None)
    return answer if answer is not None and answer.seq < frame.seq else None


def something_is_told(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether the next frame after an answer is a notification; None until it comes."""
    later = next(site.frames_after(frame), None)
    return None if later is None else later.kind is Kind.NOTIFICATION and later.from_target


def turn_of_the_next(site: FaultSite, frame: Frame) -> object:
    """Return the turnId of the target's next message, None if it has none."""
    following = site.next_from_target(frame)
    return None if following is None else obj(following.params).get("turnId")


def told_of_the_compaction() -> Selector:
    """Select the messages about the thread after thread/compact/start was answered."""

    def is_about_thread(site: FaultSite, frame: Frame) -> Verdict:
        answer = compaction_answered(site, frame)
        if answer is None or not frame.from_target:
            return False
        return obj(frame.params).get("threadId") == site.params_of(answer).get("threadId")

    return Selector(f"frame about the thread after {COMPACT}", is_about_thread)


def compaction_item() -> Selector:
    """Select a contextCompaction item after the answer, before the client's next message."""

    def is_compaction(site: FaultSite, frame: Frame) -> Verdict:
        answer = compaction_answered(site, frame)
        if answer is None or dig(frame.params, "item", "type") != "contextCompaction":
            return False
        return all(other.from_target for other in site.frames_after(answer))

    return Selector(f"contextCompaction item after {COMPACT}", is_compaction)


def asked_last(trace: Trace) -> bool:
    """Return whether thread/compact/start is answered and the client only reads afterwards."""
    site = FaultSite.of_trace(trace)
    answers = [other for other in trace.frames if answer_to(COMPACT).fits(site, other)]
    if not answers:
        return False
    thread_id = site.params_of(answers[0]).get("threadId")
    later = [
        f for f in site.frames_after(answers[0]) if not f.from_target and f.method != "thread/read"
    ]
    return not any(obj(frame.params).get("threadId") == thread_id for frame in later)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "compact-answered-with-members",
        rule="compact.reply-empty",
        on="compacted",
        reason="The result of thread/compact/start is {}; more than that is recorded.",
        change=first(
            answer_to(COMPACT).where(something_is_told, "followed by a notification"),
            edit_by("result", "turnId", value=turn_of_the_next),
        ),
    ),
    Fault(
        "compact-answered-with-null",
        rule="compact.reply-empty",
        on="compacted",
        reason="The result of thread/compact/start is {}, not null.",
        change=first(answer_to(COMPACT), edit("result", to=None)),
    ),
    Fault(
        "compaction-in-silence",
        rule="compact.told",
        on="compacted",
        reason="The progress of compaction arrives by notifications.",
        change=every(told_of_the_compaction(), drop),
        condition=Condition("compaction at the end of a conversation", asked_last),
    ),
    Fault(
        "compaction-without-item",
        rule="compact.item-emitted",
        on="compacted",
        reason="The contextCompaction item is emitted when the history is compacted.",
        change=every(compaction_item(), drop),
    ),
)
