"""Rules on compaction at the client's request: its answer, its notifications, its item."""
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
    is_failure,
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
# Requests after which the client may get no more messages about the thread.
LEAVING = methods_with("leaves-thread")
# Other requests that may change the history of a thread.
REWRITING = methods_with("rewrites-history")
# Notifications of every turn that do not name it.
OF_A_TURN = ("thread/status/changed", "thread/tokenUsage/updated")
# Number of the user's texts that the mark of a model call keeps.
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

    The specification does not forbid extra members: they are recorded as INFO.
    """

    @on_answer(COMPACT)
    def on_compact_answer(self, frame: Frame) -> Outcomes:
        if is_failure(frame):
            return None
        return empty_reply(self.conversation.request_of(frame), frame)


@dataclass(frozen=True, slots=True)
class _Call:
    """A model call, and the user's texts in it."""

    mark: Mark[ModelCall]
    texts: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Return whether all of its texts are known: the mark keeps only the last ones."""
        return len(self.texts) < MAX_TEXTS


class _Compactions(Monitor, ABC):
    """Base of rules on the accepted thread/compact/start requests of this client, by thread.

    There is something to compact if a turn of this client completed since the last compaction or
    request for one. Whether it is worth compacting is up to the server. The history was certainly
    rewritten only if the model was called with an input of the user before, and without it in a
    later turn.
    """

    def begin(self) -> None:
        self.accepted: dict[str, list[Accepted]] = {}
        self._left_threads: set[str] = set()
        self._changed_threads: set[str] = set()
        self._worth_compacting: set[Frame] = set()
        self._inputs: dict[str, list[tuple[Frame, str]]] = {}
        self._calls: list[_Call] = []
        self._rewritten_else = False

    @on_sent(*LEAVING)
    def on_leaving_sent(self, frame: Frame) -> Outcomes:
        self._left_threads.add(text(obj(frame.params).get("threadId")))
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
            self._calls.append(_Call(mark, mark.body.user_texts))
        return None

    @on("item/started", "turn/completed")
    def on_item_or_turn_end(self, frame: Frame) -> Outcomes:
        """Note that a completed turn can be compacted, and that a compaction leaves nothing."""
        turn = self.conversation.turn_of(frame)
        if turn is None:
            return None
        if frame.method == "turn/completed" and turn.status == COMPLETED and turn.request:
            kinds = {item.type for item in turn.items.values()}
            if "contextCompaction" not in kinds:
                self._changed_threads.add(turn.thread_id)
        elif item_in(frame).get("type") == "contextCompaction":
            self._changed_threads.discard(turn.thread_id)
        return None

    @on_sent(COMPACT)
    def on_compact_sent(self, frame: Frame) -> Outcomes:
        thread_id = text(obj(frame.params).get("threadId"))
        if thread_id in self._changed_threads:
            self._worth_compacting.add(frame)
        self._changed_threads.discard(thread_id)
        return None

    @on_answer(COMPACT)
    def on_compact_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate or is_failure(frame):
            return None
        thread = self.conversation.threads.get(text(obj(request.params).get("threadId")))
        if thread is not None and opened_here(thread):
            self.accepted.setdefault(thread.id, []).append((request, frame))
        return None

    def is_worth_compacting(self, request: Frame) -> bool:
        """Return whether there was something to compact when the request was sent."""
        return request in self._worth_compacting

    def level_of_missing(self, thread_id: str, request: Frame) -> Level:
        """Return the level of a missing notification: MUST if the history was surely rewritten."""
        return Level.MUST if self._rewritten(thread_id, request) else Level.SHOULD

    def inputs(self, thread_id: str) -> list[tuple[Frame, str]]:
        """Return the turn/start requests of a thread with their first texts."""
        return self._inputs.get(thread_id, [])

    def _rewritten(self, thread_id: str, request: Frame) -> bool:
        if self._rewritten_else or len(self._inputs) != 1:
            return False
        inputs = self.inputs(thread_id)
        first = [
            input_text for frame, input_text in inputs if came_before(frame, request) and input_text
        ]
        later = [
            (frame, input_text)
            for frame, input_text in inputs
            if came_before(request, frame) and input_text
        ]
        complete_calls = [call for call in self._calls if call.is_complete]
        earlier_calls = [call for call in complete_calls if marked_before(call.mark, request)]
        return any(
            _contains(before, input_text)
            and _contains(call, new)
            and not _contains(call, input_text)
            for before in earlier_calls[-1:]
            for input_text in first
            for start, new in later
            for call in complete_calls
            if not marked_before(call.mark, start)
        )

    def finish(self) -> Outcomes:
        for thread_id, accepted in self.accepted.items():
            if thread_id not in self._left_threads:
                yield from self.judge(thread_id, accepted)

    @abstractmethod
    def judge(self, thread_id: str, accepted: list[Accepted]) -> Iterator[Outcome]:
        """Judge the requests of a thread, in order, at the end of the trace."""


def _contains(call: _Call, input_text: str) -> bool:
    return any(input_text in words for words in call.texts)


@rule(
    "compact.told",
    title="Compaction is reported by notifications",
    level=Level.MUST,
    needs=("compaction",),
)
class CompactTold(_Compactions):
    """Judges that an accepted thread/compact/start causes some notification about its thread.

    Which one is not shown, so any counts that names the thread, comes after the request was sent,
    and does not belong to a later turn. SHOULD if the history may be unchanged, because nothing was
    worth compacting; MUST if a later model call lacks an input that an earlier one had. Left open:
    threads on which no turn of this client completed since the last compaction, and those that were
    unsubscribed or archived.
    """

    def judge(self, thread_id: str, accepted: list[Accepted]) -> Iterator[Outcome]:
        for request, answer in accepted:
            subject = request_subject(request)
            notification = next(
                (f for f in self.trace.frames if self._tells(f, thread_id, request)), None
            )
            if notification is not None:
                yield Witness(subject, (request, notification))
            elif self.is_worth_compacting(request):
                expected = f"a notification about thread {thread_id}"
                level = self.level_of_missing(thread_id, request)
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
        later = (
            turn_start
            for turn_start, _ in self.inputs(thread_id)
            if came_before(request, turn_start)
        )
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
    """Judges that an accepted and undisturbed thread/compact/start causes a contextCompaction item.

    The item must belong to the thread, and begin or complete after the request was sent; one may
    serve several requests, all sent before it. SHOULD if nothing may have been worth compacting;
    MUST if a later model call lacks an input that an earlier one had. Left open: threads on which
    no turn of this client completed since the last compaction, or that were unsubscribed or
    archived, and those on which, after the request, an error came, an interrupt was requested, or a
    turn ended without completing: then the history need not have been compacted.
    """

    def begin(self) -> None:
        super().begin()
        self._items: dict[str, dict[str, Frame]] = {}
        self._interferences: dict[str, Frame] = {}

    @on("item/started", "item/completed")
    def on_item(self, frame: Frame) -> Outcomes:
        item = item_in(frame)
        if item.get("type") == "contextCompaction":
            items = self._items.setdefault(text(obj(frame.params).get("threadId")), {})
            items.setdefault(text(item.get("id")), frame)
        return None

    @on("error")
    def on_error(self, frame: Frame) -> Outcomes:
        self._interferences[text(obj(frame.params).get("threadId"))] = frame
        return None

    @on_sent("turn/interrupt")
    def on_turn_interrupt_sent(self, frame: Frame) -> Outcomes:
        self._interferences[text(obj(frame.params).get("threadId"))] = frame
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is not None and turn.status in (FAILED, INTERRUPTED):
            self._interferences[turn.thread_id] = frame
        return None

    def judge(self, thread_id: str, accepted: list[Accepted]) -> Iterator[Outcome]:
        items = list(self._items.get(thread_id, {}).values())
        stopped = self._interferences.get(thread_id)
        for request, answer in accepted:
            if stopped is not None and came_before(request, stopped):
                continue
            subject = request_subject(request)
            item = next((frame for frame in items if came_before(request, frame)), None)
            if item is not None:
                yield Witness(subject, (request, item))
            elif self.is_worth_compacting(request):
                expected = f"a contextCompaction item of thread {thread_id}"
                level = self.level_of_missing(thread_id, request)
                yield Violation(subject, (request, answer), expected, "none came", level)
