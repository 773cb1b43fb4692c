"""Reading a rollout: from its records back to a thread.

Here lives how the records make up the turns with their items, the settings and the history. Lines
that cannot be read (one cut short by a crash, a record type of another version) are skipped.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from harness.wire.input import TextInput
from harness.wire.item import ThreadItem, UserMessageItem
from harness.wire.thread import TokenCounts
from harness.wire.turn import Turn
from reference_server.rollout.records import (
    CompactedRecord,
    HistoryRecord,
    ItemRecord,
    NewerFormat,
    Record,
    SteeredRecord,
    ThreadRecord,
    TurnCompletedRecord,
    TurnStartedRecord,
    parse_record,
)
from reference_server.safe_files import lines_of, open_for_reading
from reference_server.settings import ThreadSettings

_log = logging.getLogger(__name__)


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
    turns: list[Turn] = field(default_factory=list[Turn])
    history: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    tokens: list[TokenCounts] = field(default_factory=list[TokenCounts])
    context_tokens: int = 0
    unended: dict[str, str] = field(default_factory=dict[str, str])


class GivenUp(Exception):
    """The caller no longer waits for the thread."""


def read_rollout(path: Path, given_up: Event | None = None) -> StoredThread:
    """Read a rollout file. Raises OSError, UnreadableRollout.

    A long one takes seconds. A caller that no longer waits sets `given_up`, which raises GivenUp.
    """
    return fold(_records_of(path, given_up or Event()), path)


def _records_of(path: Path, given_up: Event) -> Iterator[Record]:
    with open_for_reading(path) as lines:
        for number, line in enumerate(lines_of(lines), start=1):
            if given_up.is_set():
                raise GivenUp
            if not line.strip():
                continue
            try:
                yield parse_record(line)
            except NewerFormat as error:
                raise UnreadableRollout(f"{path}: {error}") from None
            except ValueError:
                _log.warning("%s:%d: skipped a line that is no record", path, number)


def fold(records: Iterable[Record], source: object = "memory") -> StoredThread:
    """Build the thread from its records. Raises UnreadableRollout.

    A turn whose end is not recorded is interrupted; a caller that knows it to be running calls
    `mark_running`.
    """
    thread: StoredThread | None = None
    turns: dict[str, Turn] = {}
    steered: dict[str, dict[str, Any]] = {}
    for record in records:
        if isinstance(record, ThreadRecord):
            thread = thread or StoredThread(record.id, record.settings, record.at, record.at)
            continue
        if thread is None:
            break
        thread.updated_at = max(thread.updated_at, record.at)
        if isinstance(record, SteeredRecord):
            steered[record.item.id] = record.history
            _add_item(turns, record.turn_id, record.item)
            continue
        if isinstance(record, TurnStartedRecord):
            _join(thread, steered)
        _take(thread, turns, record)
        if isinstance(record, HistoryRecord):
            for item_id in record.steered or []:
                steered.pop(item_id, None)
    if thread is None:
        raise UnreadableRollout(f"{source}: does not begin with a thread record")
    _join(thread, steered)
    return thread


def _join(thread: StoredThread, steered: dict[str, dict[str, Any]]) -> None:
    """Add steered input to the history that no HistoryRecord has added: the server died before."""
    thread.history.extend(steered.values())
    steered.clear()


def _add_item(turns: dict[str, Turn], turn_id: str, item: ThreadItem) -> None:
    if turn_id in turns:
        turns[turn_id].items.append(item)


def _take(
    thread: StoredThread,
    turns: dict[str, Turn],
    record: TurnStartedRecord | ItemRecord | HistoryRecord | CompactedRecord | TurnCompletedRecord,
) -> None:
    match record:
        case TurnStartedRecord():
            turn = Turn(id=record.turn_id, items=[], status="interrupted", error=None)
            turns[turn.id] = turn
            thread.turns.append(turn)
            thread.settings = record.settings
            if record.server is not None:
                thread.unended[turn.id] = record.server
        case ItemRecord():
            _add_item(turns, record.turn_id, record.item)
            if isinstance(record.item, UserMessageItem):
                thread.preview = thread.preview or preview_of(record.item)
        case HistoryRecord():
            thread.history.extend(record.items)
            if record.tokens is not None:
                thread.tokens.append(record.tokens)
                if record.items:
                    thread.context_tokens = record.tokens.total_tokens
        case CompactedRecord():
            thread.history = list(record.history)
            if record.tokens is not None:
                thread.tokens.append(record.tokens)
            thread.context_tokens = 0
        case TurnCompletedRecord():
            thread.unended.pop(record.turn_id, None)
            if turn := turns.get(record.turn_id):
                turn.status = record.status
                turn.error = record.error


def mark_running(thread: StoredThread, turn_id: str | None) -> None:
    """Mark a turn as in progress; it runs in this process or another."""
    for turn in thread.turns:
        if turn.id == turn_id:
            turn.status = "inProgress"


def preview_of(message: UserMessageItem) -> str:
    """Give the preview of a thread that begins with this message: its first text."""
    return next((part.text for part in message.content if isinstance(part, TextInput)), "")
