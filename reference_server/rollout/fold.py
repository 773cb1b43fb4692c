"""Reconstruction of a thread from the records of its rollout, which the caller supplies."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from harness.protocol.wire.input import TextInput
from harness.protocol.wire.item import ThreadItem, UserMessageItem
from harness.protocol.wire.thread import TokenCounts
from harness.protocol.wire.tool import DynamicTool
from harness.protocol.wire.turn import Turn
from reference_server.rollout.conversation import Conversation
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


class UnreadableRollout(Exception):
    """A file does not hold a thread that this server can read; str() says why."""


@dataclass(slots=True)
class StoredThread:
    """A thread as its rollout records it; times are seconds since 1970.

    `tokens`: counts of each model call. `context_tokens`: size of the conversation by the model's
    last count, 0 after a compaction. `unfinished_turns`: for each turn whose end is not recorded,
    the id of the server that runs or ran it. `ends_with_another`: the file ends with records of
    another thread, so the next record must be a ThreadRecord.
    """

    id: str
    settings: ThreadSettings
    created_at: float
    updated_at: float
    preview: str = ""
    name: str | None = None
    source: str = APP_SERVER
    client_tools: list[DynamicTool] = field(default_factory=list[DynamicTool])
    turns: list[Turn] = field(default_factory=list[Turn])
    history: list[Fields] = field(default_factory=list[Fields])
    tokens: list[TokenCounts] = field(default_factory=list[TokenCounts])
    context_tokens: int = 0
    unfinished_turns: dict[str, str] = field(default_factory=dict[str, str])
    ends_with_another: bool = False


class _ConversationState(NamedTuple):
    """Conversation before a turn: the first `length` items of `items`."""

    items: list[Fields]
    length: int
    context_tokens: int


class Fold:
    """Builder of a thread from its records, taken one after the other.

    A turn whose end is not recorded is interrupted; a caller that knows that it is running calls
    `mark_running`. Lost and duplicate lines are tolerated: an item of an unknown turn begins the
    turn, a duplicate item counts once, and records of another thread are ignored.
    """

    def __init__(self) -> None:
        self._thread: StoredThread | None = None
        self._foreign = False
        self._turns: dict[str, Turn] = {}
        self._places: dict[str, dict[str, int]] = {}
        self._dropped: set[str] = set()
        self._ended: set[str] = set()
        # One for each turn of the thread.
        self._before: list[_ConversationState] = []
        self._conversation = Conversation()

    def take(self, record: Record) -> None:
        """Add the next record; records before the first ThreadRecord are ignored."""
        if isinstance(record, ThreadRecord):
            self._thread = self._thread or StoredThread(
                record.id,
                record.settings,
                record.at,
                record.at,
                source=record.source,
                client_tools=record.tools or [],
            )
            self._foreign = record.id != self._thread.id
            return
        if (thread := self._thread) is None or self._foreign:
            return
        if record.at > thread.updated_at:
            thread.updated_at = record.at
        match record:
            case ItemRecord():
                if self._add_item(thread, record.turn_id, record.item):
                    self._conversation.note(record.item)
                if isinstance(record.item, UserMessageItem):
                    thread.preview = thread.preview or preview_of(record.item)
            case HistoryRecord() | CompactedRecord():
                # For a turn that has ended this is a duplicate line.
                if record.turn_id not in self._ended:
                    self._converse(thread, record)
            case TurnStartedRecord():
                if self._turn(thread, record.turn_id) is not None:
                    thread.settings = record.settings
                    if record.server is not None:
                        thread.unfinished_turns = {record.turn_id: record.server}
            case SteeredRecord():
                if self._add_item(thread, record.turn_id, record.item):
                    self._conversation.steer(record)
            case TurnCompletedRecord():
                if turn := self._turn(thread, record.turn_id):
                    thread.unfinished_turns.pop(record.turn_id, None)
                    turn.status = record.status
                    turn.error = record.error
                    self._ended.add(turn.id)
                    self._conversation.end_turn()
            case NameRecord():
                thread.name = record.name
            case RollbackRecord():
                self._roll_back(thread, record.num_turns)

    def finish(self) -> StoredThread:
        """Return the thread. Raises UnreadableRollout if there was no ThreadRecord."""
        if (thread := self._thread) is None:
            raise UnreadableRollout("does not begin with a thread record")
        self._conversation.settle()
        thread.history = self._conversation.items
        thread.context_tokens = self._conversation.context_tokens
        thread.ends_with_another = self._foreign
        return thread

    def _converse(self, thread: StoredThread, record: HistoryRecord | CompactedRecord) -> None:
        if isinstance(record, HistoryRecord):
            self._conversation.extend(record)
        else:
            self._conversation.replace(record)
        if record.tokens is not None:
            thread.tokens.append(record.tokens)

    def _turn(self, thread: StoredThread, turn_id: str) -> Turn | None:
        """Return a turn, begun here if it is new; None if a rollback has dropped it."""
        existing = self._turns.get(turn_id)
        if existing is not None or turn_id in self._dropped:
            return existing
        # A thread has one active turn, so the previous one has ended, recorded or not.
        thread.unfinished_turns.clear()
        self._conversation.settle()
        talk = self._conversation
        self._before.append(_ConversationState(talk.items, len(talk.items), talk.context_tokens))
        turn = self._turns[turn_id] = Turn(id=turn_id, items=[], status="interrupted", error=None)
        self._places[turn_id] = {}
        thread.turns.append(turn)
        return turn

    def _add_item(self, thread: StoredThread, turn_id: str, item: ThreadItem) -> bool:
        """Add an item, or replace the one with its id, and return whether it is new."""
        if (turn := self._turn(thread, turn_id)) is None:
            return False
        places = self._places[turn_id]
        place = places.setdefault(item.id, len(turn.items))
        if place < len(turn.items):
            turn.items[place] = item
            return False
        turn.items.append(item)
        return True

    def _roll_back(self, thread: StoredThread, count: int) -> None:
        dropped = thread.turns[-count:]
        if not dropped:
            return
        before = self._before[len(thread.turns) - len(dropped)]
        del thread.turns[-count:], self._before[-count:]
        self._conversation.go_back(before.items, before.length, before.context_tokens)
        for turn in dropped:
            self._turns.pop(turn.id, None)
            self._dropped.add(turn.id)
            thread.unfinished_turns.pop(turn.id, None)


def fold(records: Iterable[Record]) -> StoredThread:
    """Return the thread of all its records. Raises UnreadableRollout without a ThreadRecord."""
    folding = Fold()
    for record in records:
        folding.take(record)
    return folding.finish()


def mark_running(thread: StoredThread, turn_id: str | None) -> None:
    """Set a turn, which runs in this process or another, to in progress; ignore an unknown id."""
    for turn in thread.turns:
        if turn.id == turn_id:
            turn.status = "inProgress"


def preview_of(message: UserMessageItem) -> str:
    """Return the preview of a thread whose first message this is: its first text, or ""."""
    return next((part.text for part in message.content if isinstance(part, TextInput)), "")
