"""From the records of a rollout back to a thread.

Here lives how records make up the turns with their items, the settings, the name, and the
conversation with the model. Where the records come from is the caller's matter.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from harness.wire.input import TextInput
from harness.wire.item import ThreadItem, UserMessageItem
from harness.wire.thread import TokenCounts
from harness.wire.turn import Turn
from reference_server.rollout.records import (
    APP_SERVER,
    CompactedRecord,
    HistoryRecord,
    ItemRecord,
    NameRecord,
    Record,
    RollbackRecord,
    SteeredRecord,
    ThreadRecord,
    TurnCompletedRecord,
    TurnStartedRecord,
)
from reference_server.settings import ThreadSettings

Fields = dict[str, Any]
_CALLS = ("function_call", "custom_tool_call")
ABORTED = "aborted: the server ended"
"""The output, for the model, of a call that its server did not live to answer."""


class UnreadableRollout(Exception):
    """The file holds no thread."""


@dataclass(slots=True)
class StoredThread:
    """What a rollout says of its thread; times are seconds since 1970.

    `tokens`: those of each model call. `context_tokens`: the size of the conversation as the model
    last counted it, 0 if it was compacted since. `unended`: for each turn whose end is not
    recorded, the id of the server that runs or ran it.
    """

    id: str
    settings: ThreadSettings
    created_at: float
    updated_at: float
    preview: str = ""
    name: str | None = None
    source: str = APP_SERVER
    turns: list[Turn] = field(default_factory=list[Turn])
    history: list[Fields] = field(default_factory=list[Fields])
    tokens: list[TokenCounts] = field(default_factory=list[TokenCounts])
    context_tokens: int = 0
    unended: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class _Before:
    """The conversation before a turn: the first `length` items of `history`."""

    history: list[Fields]
    length: int
    context_tokens: int


class Fold:
    """Builds a thread from its records, given one after the other.

    A turn whose end is not recorded is interrupted; a caller that knows it to be running calls
    `mark_running`.
    """

    def __init__(self) -> None:
        self._thread: StoredThread | None = None
        self._turns: dict[str, Turn] = {}
        # For each turn of the thread.
        self._before: list[_Before] = []
        # Steered input that no HistoryRecord has added yet, and calls without an output.
        self._steered: dict[str, Fields] = {}
        self._calls: dict[str, Fields] = {}

    def take(self, record: Record) -> None:
        """Add the next record; those before the first ThreadRecord do not count."""
        if isinstance(record, ThreadRecord):
            self._thread = self._thread or StoredThread(
                record.id, record.settings, record.at, record.at, source=record.source
            )
            return
        if (thread := self._thread) is None:
            return
        thread.updated_at = max(thread.updated_at, record.at)
        match record:
            case TurnStartedRecord():
                self._settle()
                self._begin(thread, record)
            case ItemRecord():
                self._add_item(record.turn_id, record.item)
                if isinstance(record.item, UserMessageItem):
                    thread.preview = thread.preview or preview_of(record.item)
            case SteeredRecord():
                self._steered[record.item.id] = record.history
                self._add_item(record.turn_id, record.item)
            case HistoryRecord():
                self._converse(thread, record)
            case CompactedRecord():
                thread.history = list(record.history)
                self._calls.clear()
                if record.tokens is not None:
                    thread.tokens.append(record.tokens)
                thread.context_tokens = 0
            case TurnCompletedRecord():
                thread.unended.pop(record.turn_id, None)
                if turn := self._turns.get(record.turn_id):
                    turn.status = record.status
                    turn.error = record.error
            case NameRecord():
                thread.name = record.name
            case RollbackRecord():
                self._roll_back(thread, record.num_turns)

    def finish(self) -> StoredThread:
        """Give the thread. Raises UnreadableRollout where there was no ThreadRecord."""
        if self._thread is None:
            raise UnreadableRollout("does not begin with a thread record")
        self._settle()
        return self._thread

    def _begin(self, thread: StoredThread, record: TurnStartedRecord) -> None:
        turn = Turn(id=record.turn_id, items=[], status="interrupted", error=None)
        self._turns[turn.id] = turn
        self._before.append(_Before(thread.history, len(thread.history), thread.context_tokens))
        thread.turns.append(turn)
        thread.settings = record.settings
        if record.server is not None:
            thread.unended[turn.id] = record.server

    def _add_item(self, turn_id: str, item: ThreadItem) -> None:
        if turn := self._turns.get(turn_id):
            turn.items.append(item)

    def _converse(self, thread: StoredThread, record: HistoryRecord) -> None:
        thread.history.extend(record.items)
        for item in record.items:
            self._note_call(item)
        for item_id in record.steered or []:
            self._steered.pop(item_id, None)
        if record.tokens is not None:
            thread.tokens.append(record.tokens)
            if record.items:
                thread.context_tokens = record.tokens.total_tokens

    def _note_call(self, item: Fields) -> None:
        kind, call_id = item.get("type"), item.get("call_id")
        if not isinstance(call_id, str):
            return
        if kind in _CALLS:
            self._calls[call_id] = item
        else:
            self._calls.pop(call_id, None)

    def _settle(self) -> None:
        """Add to the conversation what a server that died before could not.

        Calls without an output get one, since no model takes a conversation with an open call.
        """
        if self._thread is None:
            return
        for call_id, call in self._calls.items():
            self._thread.history.append(
                {"type": f"{call['type']}_output", "call_id": call_id, "output": ABORTED}
            )
        self._calls.clear()
        self._thread.history.extend(self._steered.values())
        self._steered.clear()

    def _roll_back(self, thread: StoredThread, count: int) -> None:
        self._settle()
        dropped = thread.turns[-count:]
        if not dropped:
            return
        before = self._before[len(thread.turns) - len(dropped)]
        del thread.turns[-count:], self._before[-count:]
        thread.history = before.history[: before.length]
        thread.context_tokens = before.context_tokens
        for turn in dropped:
            self._turns.pop(turn.id, None)
            thread.unended.pop(turn.id, None)


def fold(records: Iterable[Record]) -> StoredThread:
    """Build the thread from all its records. Raises UnreadableRollout."""
    folding = Fold()
    for record in records:
        folding.take(record)
    return folding.finish()


def mark_running(thread: StoredThread, turn_id: str | None) -> None:
    """Mark a turn as in progress; it runs in this process or another."""
    for turn in thread.turns:
        if turn.id == turn_id:
            turn.status = "inProgress"


def preview_of(message: UserMessageItem) -> str:
    """Give the preview of a thread that begins with this message: its first text."""
    return next((part.text for part in message.content if isinstance(part, TextInput)), "")
