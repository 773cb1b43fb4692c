"""Rules on compaction that the client asks for: its answer, its notifications, its item.

Here: what follows a thread/compact/start that was answered with a result. Not here: the life of the
contextCompaction item, which is that of every item, and automatic compaction, whose cause cannot be
seen from outside.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from abc import ABC, abstractmethod
from collections.abc import Iterator

from harness.rules.base import (
    Monitor,
    Outcome,
    Outcomes,
    Violation,
    Witness,
    on,
    on_answer,
    on_sent,
    rule,
)
from harness.rules.subjects import (
    failed,
    first_completed,
    item_in,
    opened_here,
    request_subject,
)
from harness.rules.telling import member, wrong
from harness.rules.verdict import Level
from harness.rules.walks import COMPLETED, FAILED, INTERRUPTED
from harness.trace.frame import Frame, Kind, Origin
from harness.trace.values import obj, text

COMPACT = "thread/compact/start"
# After these the client may hear nothing more of the thread.
LEAVING = ("thread/unsubscribe", "thread/archive")
Accepted = tuple[Frame, Frame]


@rule(
    "compact.reply-empty",
    title="thread/compact/start is answered with {}",
    level=Level.MUST,
    needs=("compaction",),
)
class CompactReply(Monitor):
    """Judges that a successful thread/compact/start is answered with an empty object.

    Members beyond that are extra members, which nothing forbids: recorded as INFO.
    """

    @on_answer(COMPACT)
    def answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE or failed(frame):
            return None
        subject, frames = request_subject(request), (request, frame)
        result: object = frame.result
        if not isinstance(result, dict):
            return [wrong(subject, frames, member(frame), "{}")]
        if not result:
            return [Witness(subject, frames)]
        return [wrong(subject, frames, member(frame), "{}", level=Level.INFO)]


class _Compactions(Monitor, ABC):
    """Keeps, by thread, the accepted requests on threads of this client with a completed turn."""

    def begin(self) -> None:
        self.accepted: dict[str, list[Accepted]] = {}
        self._left: set[str] = set()

    @on_sent(*LEAVING)
    def leaving(self, frame: Frame) -> Outcomes:
        self._left.add(text(obj(frame.params).get("threadId")))
        return None

    @on_answer(COMPACT)
    def answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate or failed(frame):
            return None
        thread = self.conversation.threads.get(text(obj(request.params).get("threadId")))
        if thread is None or not opened_here(thread):
            return None
        before = first_completed(self.trace, thread, request)
        if any(turn.status == COMPLETED for turn in before):
            self.accepted.setdefault(thread.id, []).append((request, frame))
        return None

    def finish(self) -> Outcomes:
        for thread_id, accepted in self.accepted.items():
            if thread_id not in self._left:
                yield from self.judge(thread_id, accepted)

    @abstractmethod
    def judge(self, thread_id: str, accepted: list[Accepted]) -> Iterator[Outcome]:
        """Judge the requests of a thread, in order, with everything known that came."""


@rule(
    "compact.told",
    title="The progress of compaction is told by notifications",
    level=Level.MUST,
    needs=("compaction",),
)
class CompactTold(_Compactions):
    """Judges that an accepted thread/compact/start brings some notification about its thread.

    Which one is not shown, so each that names the thread counts that comes after the request was
    sent. Left open: threads on which no turn of this trace was completed, and those that were left
    or archived.
    """

    def judge(self, thread_id: str, accepted: list[Accepted]) -> Iterator[Outcome]:
        for request, answer in accepted:
            subject = request_subject(request)
            told = next((f for f in self.trace.frames if _is_about(f, thread_id, request)), None)
            if told is not None:
                yield Witness(subject, (request, told))
            else:
                expected = f"a notification about thread {thread_id}"
                yield Violation(subject, (request, answer), expected, "none came")


def _is_about(frame: Frame, thread_id: str, request: Frame) -> bool:
    later = frame.connection == request.connection and frame.seq > request.seq
    if not later or frame.kind is not Kind.NOTIFICATION or frame.origin is not Origin.TARGET:
        return False
    return obj(frame.params).get("threadId") == thread_id


@rule(
    "compact.item-emitted",
    title="Compacting the history brings a contextCompaction item",
    level=Level.MUST,
    needs=("compaction",),
)
class CompactItem(_Compactions):
    """Judges that an accepted thread/compact/start that nothing stopped brings its item.

    A contextCompaction item of its thread, begun or completed after the request was sent; one may
    be for several requests, all sent before it. Left open: threads on which no turn of this trace
    was completed, that were left or archived, and those on which, after the request, an error was
    told, an interrupt was asked for, or a turn ended otherwise than completed: there the history
    need not have been compacted.
    """

    def begin(self) -> None:
        super().begin()
        self._items: dict[str, dict[str, Frame]] = {}
        self._stopped: dict[str, Frame] = {}

    @on("item/started", "item/completed")
    def item(self, frame: Frame) -> Outcomes:
        item = item_in(frame)
        if item.get("type") == "contextCompaction":
            seen = self._items.setdefault(text(obj(frame.params).get("threadId")), {})
            seen.setdefault(text(item.get("id")), frame)
        return None

    @on("error")
    def error(self, frame: Frame) -> Outcomes:
        self._stopped[text(obj(frame.params).get("threadId"))] = frame
        return None

    @on_sent("turn/interrupt")
    def interrupt(self, frame: Frame) -> Outcomes:
        self._stopped[text(obj(frame.params).get("threadId"))] = frame
        return None

    @on("turn/completed")
    def ended(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is not None and turn.status in (FAILED, INTERRUPTED):
            self._stopped[turn.thread_id] = frame
        return None

    def judge(self, thread_id: str, accepted: list[Accepted]) -> Iterator[Outcome]:
        items = list(self._items.get(thread_id, {}).values())
        stopped = self._stopped.get(thread_id)
        for request, answer in accepted:
            if stopped is not None and stopped.seq > request.seq:
                continue
            subject = request_subject(request)
            mine = next((frame for frame in items if frame.seq > request.seq), None)
            if mine is not None:
                yield Witness(subject, (request, mine))
            else:
                expected = f"a contextCompaction item of thread {thread_id}"
                yield Violation(subject, (request, answer), expected, "none came")
