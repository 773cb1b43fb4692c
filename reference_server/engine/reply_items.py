"""Items of one message of the model: an agentMessage, and a plan item for each proposed plan.

The agentMessage item starts with the message, so it is empty if all the text is a plan. Source:
session-protocol "ThreadItem" (plan: the completed item is authoritative and may differ from its
deltas), "Events" (agentMessage deltas rebuild the reply).
"""

from harness.protocol.wire.item import PlanItem
from harness.protocol.wire.item_events import PlanDeltaNotification
from reference_server.deltas import DeltaLine
from reference_server.engine.items import GrowingMessage, ItemLog
from reference_server.engine.plan_text import Piece, PlanSplitter, Side, split


class _GrowingPlan:
    """A plan item while it streams; its final text has no empty lines around it."""

    def __init__(self, log: ItemLog) -> None:
        self._log = log
        self._id = log.thread.new_item_id()
        self._parts: list[str] = []
        self._line = DeltaLine(
            PlanDeltaNotification(
                thread_id=log.thread.id, turn_id=log.turn_id, item_id=self._id, delta=""
            )
        )
        log.start_item(
            PlanItem(id=self._id, text=""),
            lambda: PlanItem(id=self._id, text="".join(self._parts)),
        )

    def add(self, delta: str) -> None:
        self._parts.append(delta)
        self._log.thread.subscribers.send_delta(self._line, delta)

    def complete(self, text: str | None = None) -> None:
        """Complete the item, with `text` if given, else with the streamed text."""
        full_text = "".join(self._parts) if text is None else text
        self._log.complete_item(PlanItem(id=self._id, text=full_text.strip("\r\n")))


class GrowingReply:
    """A message of the model while it streams; `text` includes plans and tag lines."""

    def __init__(self, log: ItemLog, phase: str | None) -> None:
        self._log = log
        self._message = GrowingMessage(log, phase)
        self._splitter = PlanSplitter()
        self._parts: list[str] = []
        self._plan: _GrowingPlan | None = None

    @property
    def text(self) -> str:
        """Return the text streamed so far."""
        return "".join(self._parts)

    def add(self, delta: str) -> None:
        """Stream a piece of text."""
        self._parts.append(delta)
        self._stream(self._splitter.feed(delta))

    def finish(self, final_text: str, phase: str | None) -> None:
        """Complete the items, given the model's final text, and its phase if there is one.

        A message without deltas gets that text. If the text continues the deltas, the rest is
        streamed first. If it contradicts them, the agentMessage keeps the deltas, since clients
        have them, and the plan gets the final text, which is authoritative.
        """
        self._message.phase = phase or self._message.phase
        streamed = self.text
        if not streamed:
            self._parts.append(final_text)
            self._finish_unstreamed(split(final_text))
            return
        if final_text != streamed and final_text.startswith(streamed):
            self.add(final_text[len(streamed) :])
        self._end(_last_plan(final_text))

    def complete(self) -> None:
        """Complete the items with the text streamed so far. Raises OSError after both are done."""
        self._end(None)

    def _end(self, plan: str | None) -> None:
        self._stream(self._splitter.finish())
        try:
            if self._plan is not None:
                self._plan.complete(plan)
        finally:
            self._message.complete()

    def _stream(self, pieces: list[Piece]) -> None:
        for side, text in pieces:
            if side is Side.PLAN:
                self._plan = self._plan or _GrowingPlan(self._log)
                self._plan.add(text)
            else:
                self._message.add(text)

    def _finish_unstreamed(self, pieces: list[Piece]) -> None:
        try:
            for side, text in pieces:
                if side is Side.PLAN:
                    _GrowingPlan(self._log).complete(text)
        finally:
            self._message.finish("".join(text for side, text in pieces if side is Side.ANSWER))


def _last_plan(message: str) -> str | None:
    plans = [text for side, text in split(message) if side is Side.PLAN]
    return plans[-1] if plans else None
