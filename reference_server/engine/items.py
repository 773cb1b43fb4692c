"""Streamed items, from start over deltas to completion; and the `model/rerouted` notification.

`sampling` decides which item to start when. Source: session-protocol "Item lifecycle", "Events"
("the backend reroutes to another model": the type of the reason is not shown there, and a
provider's answer only names the model, so the reason is always the same).
"""

from collections.abc import Callable
from typing import Protocol

from harness.protocol.wire.base import WireModel
from harness.protocol.wire.item import AgentMessageItem, ReasoningItem, ThreadItem
from harness.protocol.wire.item_events import (
    AgentMessageDeltaNotification,
    ItemCompletedNotification,
    ItemStartedNotification,
    ReasoningSummaryPartAddedNotification,
    ReasoningSummaryTextDeltaNotification,
    ReasoningTextDeltaNotification,
)
from harness.protocol.wire.turn import ModelReroutedNotification
from reference_server.deltas import DeltaLine
from reference_server.rollout.records import ItemRecord
from reference_server.session.thread import LoadedThread

REASON = "providerChoice"


class Reroutes:
    """Reroutes of one turn; each is sent once, not with every call."""

    def __init__(self, thread: LoadedThread, turn_id: str) -> None:
        self._thread = thread
        self._turn_id = turn_id
        self._reported = ""

    def note(self, answering: str) -> None:
        """Note the model that answers a call; send `model/rerouted` if it is a new other one."""
        requested = self._thread.settings.model
        if answering == requested:
            self._reported = ""
        elif answering != self._reported:
            self._reported = answering
            self._thread.subscribers.notify(
                ModelReroutedNotification(
                    thread_id=self._thread.id,
                    turn_id=self._turn_id,
                    from_model=requested,
                    to_model=answering,
                    reason=REASON,
                )
            )


MAX_PARTS = 1000
"""Maximum sections of a summary, or raw blocks, of one reasoning item."""


class ItemLog:
    """Log of the items of one turn: it notifies the subscribers and records completed items."""

    def __init__(self, thread: LoadedThread, turn_id: str) -> None:
        self.thread = thread
        self.turn_id = turn_id
        self.reroutes = Reroutes(thread, turn_id)
        self._open: dict[str, Callable[[], ThreadItem]] = {}

    def open_items(self) -> list[ThreadItem]:
        """Return the items that were started and not completed, with the text streamed so far."""
        return [now() for now in self._open.values()]

    def start_item(
        self, item: ThreadItem, snapshot: Callable[[], ThreadItem] | None = None
    ) -> None:
        """Send `item/started`; `snapshot` returns the item as streamed so far, if it grows."""
        self._open[item.id] = snapshot or (lambda: item)
        self.thread.subscribers.notify(
            ItemStartedNotification(thread_id=self.thread.id, turn_id=self.turn_id, item=item)
        )

    def complete_item(self, item: ThreadItem) -> None:
        """Record an item and send `item/completed`. Raises OSError after the notification."""
        try:
            self.thread.record(ItemRecord(at=self.thread.clock(), turn_id=self.turn_id, item=item))
        finally:
            self.notify_completed(item)

    def notify_completed(self, item: ThreadItem) -> None:
        """Send `item/completed` for an item that is in the rollout already."""
        self._open.pop(item.id, None)
        self.thread.subscribers.notify(
            ItemCompletedNotification(thread_id=self.thread.id, turn_id=self.turn_id, item=item)
        )


class GrowingItem(Protocol):
    """An item that was started and not yet completed."""

    def complete(self) -> None:
        """Complete the item with the text streamed so far. Raises OSError."""
        ...


class GrowingMessage:
    """An agentMessage item while it streams; its text is its joined deltas, if there are any.

    `phase` may be known only at the end of the message.
    """

    def __init__(self, log: ItemLog, phase: str | None) -> None:
        self._log = log
        self.phase = phase
        self._id = log.thread.new_item_id()
        self._parts: list[str] = []
        self._line = DeltaLine(
            AgentMessageDeltaNotification(
                thread_id=log.thread.id, turn_id=log.turn_id, item_id=self._id, delta=""
            )
        )
        self._send = log.thread.subscribers.send_delta
        log.start_item(self._item(""), lambda: self._item(self.text))

    @property
    def text(self) -> str:
        """Return the text streamed so far."""
        return "".join(self._parts)

    def add(self, delta: str) -> None:
        """Stream a piece of text."""
        self._parts.append(delta)
        self._send(self._line, delta)

    def finish(self, final_text: str) -> None:
        """Complete the item, given the model's final text.

        A message without deltas gets that text. If the text continues the deltas, the rest is
        streamed first. If it contradicts the deltas, the deltas stand, since clients have them.
        """
        streamed = self.text
        if streamed and len(final_text) > len(streamed) and final_text.startswith(streamed):
            self.add(final_text[len(streamed) :])
        elif not self._parts:
            self._parts.append(final_text)
        self.complete()

    def complete(self) -> None:
        """Complete the item with the text streamed so far."""
        self._log.complete_item(self._item(self.text))

    def _item(self, text: str) -> AgentMessageItem:
        if self.phase is None:
            return AgentMessageItem(id=self._id, text=text)
        return AgentMessageItem(id=self._id, text=text, phase=self.phase)


class GrowingReasoning:
    """A reasoning item while it streams, with summary sections and raw blocks by index."""

    def __init__(self, log: ItemLog) -> None:
        self._log = log
        self._id = log.thread.new_item_id()
        # Each part is a list of its deltas, joined only at the end.
        self._summary: list[list[str]] = []
        self._content: list[list[str]] = []
        self._lines: dict[tuple[str, int], DeltaLine] = {}
        log.start_item(self._item(), self._item)

    def begin_summary_part(self, index: int) -> None:
        """Open a section of the summary."""
        index = _part_index(self._summary, index)
        self._log.thread.subscribers.notify(
            ReasoningSummaryPartAddedNotification(
                thread_id=self._log.thread.id,
                turn_id=self._log.turn_id,
                item_id=self._id,
                summary_index=index,
            )
        )

    def add_summary(self, index: int, delta: str) -> None:
        """Stream a piece of a summary section."""
        index = _part_index(self._summary, index)
        self._summary[index].append(delta)
        self._send("summary", index, delta)

    def add_content(self, index: int, delta: str) -> None:
        """Stream a piece of a raw block."""
        index = _part_index(self._content, index)
        self._content[index].append(delta)
        self._send("content", index, delta)

    def finish(self, summary: list[str], content: list[str]) -> None:
        """Complete the item; the model's final parts, if any, replace the streamed ones."""
        self._summary = [[text] for text in summary] or self._summary
        self._content = [[text] for text in content] or self._content
        self.complete()

    def complete(self) -> None:
        """Complete the item with the parts streamed so far."""
        self._log.complete_item(self._item())

    def _item(self) -> ReasoningItem:
        return ReasoningItem(
            id=self._id, summary=_join_parts(self._summary), content=_join_parts(self._content)
        )

    def _send(self, kind: str, index: int, delta: str) -> None:
        line = self._lines.get((kind, index))
        if line is None:
            line = self._lines[kind, index] = DeltaLine(self._delta(kind, index))
        self._log.thread.subscribers.send_delta(line, delta)

    def _delta(self, kind: str, index: int) -> WireModel:
        if kind == "summary":
            return ReasoningSummaryTextDeltaNotification(
                thread_id=self._log.thread.id,
                turn_id=self._log.turn_id,
                item_id=self._id,
                summary_index=index,
                delta="",
            )
        return ReasoningTextDeltaNotification(
            thread_id=self._log.thread.id,
            turn_id=self._log.turn_id,
            item_id=self._id,
            content_index=index,
            delta="",
        )


def _join_parts(parts: list[list[str]]) -> list[str]:
    return ["".join(pieces) for pieces in parts]


def _part_index(parts: list[list[str]], index: int) -> int:
    """Return the index of the part that a delta belongs to, adding the part if it is new.

    An index beyond the next part, or a negative one, means the next part; after MAX_PARTS parts,
    the last one.
    """
    if not 0 <= index < len(parts):
        if len(parts) == MAX_PARTS:
            return MAX_PARTS - 1
        index = len(parts)
        parts.append([])
    return index
