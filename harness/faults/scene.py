"""Finding the place in a trace where a fault can happen.

Here: questions such as "a turn of ours that ended completed" with an answer or `NotApplied`. Not
here: changing anything. Only threads and turns that the trace itself started are offered, since
rules judge no others.
"""

from collections.abc import Callable
from typing import Any

from harness.faults.site import NotApplied
from harness.trace.frame import Frame, Kind, Origin
from harness.trace.trace import Trace
from harness.trace.values import dig, obj, text
from harness.trace.views import Conversation, ItemView, TurnView

Where = Callable[[Frame], bool]


def _any(_: Any) -> bool:
    return True


__all__ = ["NotApplied", "Scene"]


class Scene:
    """A trace and the conversation it shows."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.conversation = Conversation()
        for frame in trace.frames:
            self.conversation.feed(frame)

    def frame(self, kind: Kind, where: Where = _any) -> Frame:
        """The first frame of the target of a kind."""
        return self._first(
            f"{kind} of the target",
            lambda frame: frame.origin is Origin.TARGET and frame.kind is kind and where(frame),
        )

    def sent(self, method: str) -> Frame:
        """The first request of a method that we sent."""
        return self._first(
            f"own {method}",
            lambda frame: (
                frame.origin is Origin.HARNESS
                and frame.kind is Kind.REQUEST
                and frame.method == method
                and not frame.deliberate
            ),
        )

    def answers(self, method: str, where: Where = _any) -> list[Frame]:
        """The successful answers to a method."""
        found = [
            frame
            for frame in self.trace.frames
            if frame.origin is Origin.TARGET
            and frame.kind is Kind.RESPONSE
            and (asked := self.conversation.request_of(frame)) is not None
            and asked.method == method
            and not asked.deliberate
            and where(frame)
        ]
        if not found:
            raise NotApplied(f"no answer to {method} that fits")
        return found

    def request_of(self, answer: Frame) -> Frame:
        """The request of an answer."""
        request = self.conversation.request_of(answer)
        if request is None:
            raise NotApplied("an answer without a request")
        return request

    def notified(self, method: str, where: Where = _any) -> list[Frame]:
        """The notifications of a method."""
        found = [
            frame
            for frame in self.trace.frames
            if frame.origin is Origin.TARGET
            and frame.kind is Kind.NOTIFICATION
            and frame.method == method
            and where(frame)
        ]
        if not found:
            raise NotApplied(f"no {method} that fits")
        return found

    def announced_thread(self) -> Frame:
        """The thread/started of a thread that we started."""
        return self.notified("thread/started", lambda f: self._is_ours(_thread_id(f)))[0]

    def statuses(self, kind: str | None = None) -> list[Frame]:
        """The thread/status/changed of one thread of ours, those of one type only if given."""
        ours = self.notified("thread/status/changed", lambda f: self._is_ours(_thread_id(f)))
        mine = [frame for frame in ours if _thread_id(frame) == _thread_id(ours[0])]
        fitting = [f for f in mine if kind in (None, dig(f.params, "status", "type"))]
        if not fitting:
            raise NotApplied(f"no status {kind}")
        return fitting

    def turn(self, *statuses: str, where: Callable[[TurnView], bool] = _any) -> TurnView:
        """A turn that we started, that was announced, and that ended with one of the statuses."""
        for turn in self.conversation.turns.values():
            whole = turn.reply is not None and turn.started and len(turn.completed) == 1
            if whole and (not statuses or turn.status in statuses) and where(turn):
                return turn
        raise NotApplied(f"no turn {' or '.join(statuses)} that fits")

    def item(
        self,
        *types: str,
        deltas: int = 0,
        where: Callable[[ItemView], bool] = _any,
    ) -> ItemView:
        """An item of such a turn, started and completed once, with at least so many deltas."""
        for turn in self.conversation.turns.values():
            if turn.reply is None or not turn.started or len(turn.completed) != 1:
                continue
            for item in turn.items.values():
                if types and item.type not in types:
                    continue
                once = len(item.started) == 1 and len(item.completed) == 1
                if once and len(self.deltas(item)) >= deltas and where(item):
                    return item
        raise NotApplied(f"no item {' or '.join(types)} that fits")

    def deltas(self, item: ItemView) -> list[Frame]:
        """The deltas of an item that have a text."""
        return [
            frame
            for frame in self.trace.frames
            if frame.origin is Origin.TARGET
            and text(obj(frame.params).get("delta"))
            and self.conversation.item_of(frame) is item
        ]

    def about(self, item: ItemView) -> list[Frame]:
        """Every notification of an item."""
        return [
            frame
            for frame in self.trace.frames
            if frame.origin is Origin.TARGET
            and frame.kind is Kind.NOTIFICATION
            and self.conversation.item_of(frame) is item
        ]

    def _first(self, what: str, where: Where) -> Frame:
        for frame in self.trace.frames:
            if where(frame):
                return frame
        raise NotApplied(f"no {what} that fits")

    def _is_ours(self, thread_id: str) -> bool:
        thread = self.conversation.threads.get(thread_id)
        return thread is not None and thread.request is not None and not thread.request.deliberate


def _thread_id(frame: Frame) -> str:
    params = obj(frame.params)
    return text(params.get("threadId")) or text(dig(params, "thread", "id"))
