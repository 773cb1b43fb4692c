"""Faults of a compaction that the client asked for."""

from harness.faults.base import Fault, Given
from harness.faults.changes import every, first
from harness.faults.operators import drop, edit, edit_by
from harness.faults.selectors import Selector, Verdict, answer_to
from harness.faults.site import FaultSite
from harness.protocol.values import dig, obj
from harness.trace.frame import Frame, Kind
from harness.trace.trace import Trace

COMPACT = "thread/compact/start"


def compaction_answered(site: FaultSite, frame: Frame) -> Frame | None:
    """The first answer to thread/compact/start before a frame."""
    answers = (one for one in site.frames if answer_to(COMPACT).fits(site, one))
    answer = next(answers, None)
    return answer if answer is not None and answer.seq < frame.seq else None


def something_is_told(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether the next frame after an answer is a notification; known when that comes."""
    later = next(site.later(frame), None)
    return None if later is None else later.kind is Kind.NOTIFICATION and later.from_target


def turn_of_the_next(site: FaultSite, frame: Frame) -> object:
    """The turnId of the next notification."""
    told = site.next_from_target(frame)
    return None if told is None else obj(told.params).get("turnId")


def told_of_the_compaction() -> Selector:
    """Select the messages about the thread after thread/compact/start was answered."""

    def told(site: FaultSite, frame: Frame) -> Verdict:
        answer = compaction_answered(site, frame)
        if answer is None or not frame.from_target:
            return False
        return obj(frame.params).get("threadId") == site.asked(answer).get("threadId")

    return Selector(f"frame about the thread after {COMPACT}", told)


def compaction_item() -> Selector:
    """A contextCompaction item after the answer, before the client's next message."""

    def told(site: FaultSite, frame: Frame) -> Verdict:
        answer = compaction_answered(site, frame)
        if answer is None or dig(frame.params, "item", "type") != "contextCompaction":
            return False
        return all(one.from_target for one in site.later(answer))

    return Selector(f"contextCompaction item after {COMPACT}", told)


def asked_last(trace: Trace) -> bool:
    """Return whether the client only reads the thread after its thread/compact/start, if
    anything.
    """
    site = FaultSite.of(trace)
    answers = [one for one in trace.frames if answer_to(COMPACT).fits(site, one)]
    if not answers:
        return False
    thread_id = site.asked(answers[0]).get("threadId")
    later = [
        one for one in site.later(answers[0]) if not one.from_target and one.method != "thread/read"
    ]
    return not any(obj(one.params).get("threadId") == thread_id for one in later)


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
        given=Given("compaction at the end of a conversation", asked_last),
    ),
    Fault(
        "compaction-without-item",
        rule="compact.item-emitted",
        on="compacted",
        reason="The contextCompaction item is emitted when the history is compacted.",
        change=every(compaction_item(), drop),
    ),
)
