"""Rules on compaction that the client asks for: its answer, its notifications, its item."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from harness.judge.base import (
    Monitor,
    Outcome,
    Outcomes,
    Violation,
    Witness,
    on,
    on_answer,
    on_mark,
    on_sent,
    rule,
)
from harness.judge.rules.shared.empty_replies import empty_reply
from harness.judge.rules.shared.state_tracking import COMPLETED, FAILED, INTERRUPTED
from harness.judge.rules.shared.steered_input import first_text
from harness.judge.rules.shared.view_queries import (
    failed,
    item_in,
    opened_here,
    request_subject,
)
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import obj, text
from harness.trace.frame import Frame, Kind, Origin
from harness.trace.marks import ModelCall
from harness.trace.order import came_before, marked_before
from harness.trace.trace import Mark

COMPACT = "thread/compact/start"
# After these the client may hear nothing more of the thread.
LEAVING = methods_with("leaves-thread")
# What else may change what a thread remembers.
REWRITING = methods_with("rewrites-history")
# What every turn brings without naming it.
OF_A_TURN = ("thread/status/changed", "thread/tokenUsage/updated")
# So many texts of the user a mark of a model call keeps.
MAX_TEXTS = 8
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
    def on_compact_answer(self, frame: Frame) -> Outcomes:
        if failed(frame):
            return None
        return empty_reply(self.conversation.request_of(frame), frame)


@dataclass(frozen=True, slots=True)
class _Called:
    """A call of the model, and the user's texts in it."""

    mark: Mark[ModelCall]
    texts: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Return whether it has all of them: the mark keeps the last ones only."""
        return len(self.texts) < MAX_TEXTS


class _Compactions(Monitor, ABC):
    """Keeps, by thread, the accepted requests on threads of this client.

    There was something to compact where a turn of this client was completed since the thread was
    last compacted, or asked to be. Whether that is worth compacting is the server's to say. That
    the history was rewritten after all is certain only where the model was called with an input of
    the user before, and is called without it in a later turn.
    """

    def begin(self) -> None:
        self.accepted: dict[str, list[Accepted]] = {}
        self._left: set[str] = set()
        self._fresh: set[str] = set()
        self._worth: set[Frame] = set()
        self._inputs: dict[str, list[tuple[Frame, str]]] = {}
        self._calls: list[_Called] = []
        self._rewritten_else = False

    @on_sent(*LEAVING)
    def on_leaving_sent(self, frame: Frame) -> Outcomes:
        self._left.add(text(obj(frame.params).get("threadId")))
        return None

    @on_sent(*REWRITING)
    def on_rewriting_sent(self, frame: Frame) -> Outcomes:
        self._rewritten_else = True
        return None

    @on_sent("turn/start")
    def on_turn_start_sent(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        inputs = self._inputs.setdefault(text(params.get("threadId")), [])
        inputs.append((frame, first_text(params.get("input"))))
        return None

    @on_mark(ModelCall)
    def on_model_call(self, mark: Mark[ModelCall]) -> Outcomes:
        if mark.body.user_texts is not None:
            self._calls.append(_Called(mark, mark.body.user_texts))
        return None

    @on("item/started", "turn/completed")
    def news(self, frame: Frame) -> Outcomes:
        """A turn gives something to compact, and a compaction leaves nothing."""
        turn = self.conversation.turn_of(frame)
        if turn is None:
            return None
        if frame.method == "turn/completed" and turn.status == COMPLETED and turn.request:
            kinds = {item.type for item in turn.items.values()}
            if "contextCompaction" not in kinds:
                self._fresh.add(turn.thread_id)
        elif item_in(frame).get("type") == "contextCompaction":
            self._fresh.discard(turn.thread_id)
        return None

    @on_sent(COMPACT)
    def on_compact_sent(self, frame: Frame) -> Outcomes:
        thread_id = text(obj(frame.params).get("threadId"))
        if thread_id in self._fresh:
            self._worth.add(frame)
        self._fresh.discard(thread_id)
        return None

    @on_answer(COMPACT)
    def on_compact_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate or failed(frame):
            return None
        thread = self.conversation.threads.get(text(obj(request.params).get("threadId")))
        if thread is not None and opened_here(thread):
            self.accepted.setdefault(thread.id, []).append((request, frame))
        return None

    def worth(self, request: Frame) -> bool:
        """Return whether there was something to compact when it was asked for."""
        return request in self._worth

    def weight(self, thread_id: str, request: Frame) -> Level:
        """Return the level of a missing notification: MUST if the history was surely rewritten."""
        return Level.MUST if self._rewritten(thread_id, request) else Level.SHOULD

    def inputs(self, thread_id: str) -> list[tuple[Frame, str]]:
        """The turn/start of a thread, and the first text of each."""
        return self._inputs.get(thread_id, [])

    def _rewritten(self, thread_id: str, request: Frame) -> bool:
        if self._rewritten_else or len(self._inputs) != 1:
            return False
        inputs = self.inputs(thread_id)
        first = [said for frame, said in inputs if came_before(frame, request) and said]
        later = [(frame, said) for frame, said in inputs if came_before(request, frame) and said]
        whole = [call for call in self._calls if call.whole]
        known = [call for call in whole if marked_before(call.mark, request)]
        return any(
            _has(before, said) and _has(call, new) and not _has(call, said)
            for before in known[-1:]
            for said in first
            for start, new in later
            for call in whole
            if not marked_before(call.mark, start)
        )

    def finish(self) -> Outcomes:
        for thread_id, accepted in self.accepted.items():
            if thread_id not in self._left:
                yield from self.judge(thread_id, accepted)

    @abstractmethod
    def judge(self, thread_id: str, accepted: list[Accepted]) -> Iterator[Outcome]:
        """Judge the requests of a thread, in order, with everything known that came."""


def _has(call: _Called, said: str) -> bool:
    return any(said in words for words in call.texts)


@rule(
    "compact.told",
    title="The progress of compaction is told by notifications",
    level=Level.MUST,
    needs=("compaction",),
)
class CompactTold(_Compactions):
    """Judges that an accepted thread/compact/start brings some notification about its thread.

    Which one is not shown, so each that names the thread counts that comes after the request was
    sent, and is not of a turn that was asked for later. Where the history may have been left as it
    was, because there was nothing worth compacting, it weighs SHOULD; MUST where a later call of
    the model lacks an input that an earlier one had. Left open: threads on which no turn of this
    client was completed since the last compaction, and those that were left or archived.
    """

    def judge(self, thread_id: str, accepted: list[Accepted]) -> Iterator[Outcome]:
        for request, answer in accepted:
            subject = request_subject(request)
            told = next((f for f in self.trace.frames if self._tells(f, thread_id, request)), None)
            if told is not None:
                yield Witness(subject, (request, told))
            elif self.worth(request):
                expected = f"a notification about thread {thread_id}"
                level = self.weight(thread_id, request)
                yield Violation(subject, (request, answer), expected, "none came", level)

    def _tells(self, frame: Frame, thread_id: str, request: Frame) -> bool:
        """Return whether a message may be about the compaction."""
        later = frame.connection == request.connection and came_before(request, frame)
        if not later or frame.kind is not Kind.NOTIFICATION or frame.origin is not Origin.TARGET:
            return False
        if obj(frame.params).get("threadId") != thread_id:
            return False
        turn = self.conversation.turn_of(frame)
        if turn is not None:
            return turn.request is None or came_before(turn.request, request)
        later = (one for one, _ in self.inputs(thread_id) if came_before(request, one))
        start = next(later, None)
        in_time = start is None or came_before(frame, start)
        return in_time or frame.method not in OF_A_TURN


@rule(
    "compact.item-emitted",
    title="Compacting the history brings a contextCompaction item",
    level=Level.MUST,
    needs=("compaction",),
)
class CompactItem(_Compactions):
    """Judges that an accepted thread/compact/start that nothing stopped brings its item.

    A contextCompaction item of its thread, begun or completed after the request was sent; one may
    be for several requests, all sent before it. Where there may have been nothing worth compacting
    it weighs SHOULD; MUST where a later call of the model lacks an input that an earlier one had.
    Left open: threads on which no turn of this client was completed since the last compaction, that
    were left or archived, and those on which, after the request, an error was told, an interrupt
    was asked for, or a turn ended otherwise than completed: there the history need not have been
    compacted.
    """

    def begin(self) -> None:
        super().begin()
        self._items: dict[str, dict[str, Frame]] = {}
        self._stopped: dict[str, Frame] = {}

    @on("item/started", "item/completed")
    def on_item(self, frame: Frame) -> Outcomes:
        item = item_in(frame)
        if item.get("type") == "contextCompaction":
            seen = self._items.setdefault(text(obj(frame.params).get("threadId")), {})
            seen.setdefault(text(item.get("id")), frame)
        return None

    @on("error")
    def on_error(self, frame: Frame) -> Outcomes:
        self._stopped[text(obj(frame.params).get("threadId"))] = frame
        return None

    @on_sent("turn/interrupt")
    def on_turn_interrupt_sent(self, frame: Frame) -> Outcomes:
        self._stopped[text(obj(frame.params).get("threadId"))] = frame
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is not None and turn.status in (FAILED, INTERRUPTED):
            self._stopped[turn.thread_id] = frame
        return None

    def judge(self, thread_id: str, accepted: list[Accepted]) -> Iterator[Outcome]:
        items = list(self._items.get(thread_id, {}).values())
        stopped = self._stopped.get(thread_id)
        for request, answer in accepted:
            if stopped is not None and came_before(request, stopped):
                continue
            subject = request_subject(request)
            mine = next((frame for frame in items if came_before(request, frame)), None)
            if mine is not None:
                yield Witness(subject, (request, mine))
            elif self.worth(request):
                expected = f"a contextCompaction item of thread {thread_id}"
                level = self.weight(thread_id, request)
                yield Violation(subject, (request, answer), expected, "none came", level)
