"""The records of a rollout.

Here live the shapes of its lines. What the client saw (`item`) and what the model is sent
(`history`) are kept apart: some of either has no counterpart in the other. The format is ours, the
document shows none.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from harness.wire.base import WireModel
from harness.wire.error import TurnError
from harness.wire.item import ThreadItem, UserMessageItem
from harness.wire.thread import TokenCounts
from harness.wire.turn import TurnStatus
from reference_server.settings import ThreadSettings

FORMAT_VERSION = 1


class ThreadRecord(WireModel):
    """The first line: which thread this is. Times are seconds since 1970."""

    type: Literal["thread"] = "thread"
    at: float
    version: int = FORMAT_VERSION
    id: str
    settings: ThreadSettings


class TurnStartedRecord(WireModel):
    """A turn began, under these settings, which are the thread's from then on."""

    type: Literal["turn-started"] = "turn-started"
    at: float
    turn_id: str
    settings: ThreadSettings


class ItemRecord(WireModel):
    """An item was completed."""

    type: Literal["item"] = "item"
    at: float
    turn_id: str
    item: ThreadItem


class HistoryRecord(WireModel):
    """The conversation with the model grew by these Responses API items.

    `steered`: the ids of the user messages whose SteeredRecord had announced them.
    `tokens`: what the model counted for the call that they answer; without items, for a call that
    did not hold this conversation.
    """

    type: Literal["history"] = "history"
    at: float
    turn_id: str
    items: list[dict[str, Any]]
    steered: list[str] | None = None
    tokens: TokenCounts | None = None


class SteeredRecord(WireModel):
    """A running turn was given further input: an item, and a part of the history that is to come.

    It joins the history with a later HistoryRecord, or at the end of the turn if there is none.
    """

    type: Literal["steered"] = "steered"
    at: float
    turn_id: str
    item: UserMessageItem
    history: dict[str, Any]


class CompactedRecord(WireModel):
    """The conversation with the model is this from now on: it was compacted.

    `tokens`: what the model counted for the call that made the summary.
    """

    type: Literal["compacted"] = "compacted"
    at: float
    turn_id: str
    history: list[dict[str, Any]]
    tokens: TokenCounts | None = None


class TurnCompletedRecord(WireModel):
    """A turn ended. A turn without this record was cut by the end of the server."""

    type: Literal["turn-completed"] = "turn-completed"
    at: float
    turn_id: str
    status: TurnStatus
    error: TurnError | None


Record = Annotated[
    ThreadRecord
    | TurnStartedRecord
    | ItemRecord
    | HistoryRecord
    | SteeredRecord
    | CompactedRecord
    | TurnCompletedRecord,
    Field(discriminator="type"),
]

_adapter: list[TypeAdapter[Record]] = []


def parse_record(line: bytes) -> Record:
    """Read one line. Raises pydantic.ValidationError (a ValueError)."""
    if not _adapter:
        _adapter.append(TypeAdapter(Record))
    return _adapter[0].validate_json(line)
