"""Records of a rollout, the schema of its lines.

Items that clients saw (`item`) and the conversation with the model (`history`) are recorded
separately, since parts of each have no counterpart in the other. The specification shows no format;
this one is ours.
"""

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, TypeAdapter

from harness.protocol.wire.base import WireModel
from harness.protocol.wire.error import TurnError
from harness.protocol.wire.item import ThreadItem, UserMessageItem
from harness.protocol.wire.thread import TokenCounts
from harness.protocol.wire.tool import DynamicTool
from harness.protocol.wire.turn import TurnStatus
from reference_server.settings import ThreadSettings

FORMAT_VERSION = 1
APP_SERVER = "appServer"
"""Source of a thread whose client did not state its kind."""

YEAR_10000 = 253_402_300_800
Moment = Annotated[float, Field(ge=0, lt=YEAR_10000, allow_inf_nan=False)]
"""Seconds since 1970, before the year 10000."""


_MEMBERS = {
    "message": ("role", "content"),
    "function_call": ("call_id",),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call": ("call_id",),
    "custom_tool_call_output": ("call_id", "output"),
}


def _check_sendable(item: dict[str, Any]) -> dict[str, Any]:
    """Return the item; raise ValueError for one that providers reject, failing each later turn.

    An item of a type that is not in _MEMBERS came from a provider and is accepted.
    """
    kind = item.get("type")
    if not isinstance(kind, str):
        raise ValueError("an item of the conversation has no type")
    for name in _MEMBERS.get(kind, ()):
        if name not in item:
            raise ValueError(f"a {kind} of the conversation has no {name}")
    return item


ModelItem = Annotated[dict[str, Any], AfterValidator(_check_sendable)]
"""A Responses API item that can be sent to the model."""


class NewerFormat(ValueError):
    """A record of a newer version than this server knows."""

    def __init__(self, version: int) -> None:
        super().__init__(
            f"was written by a newer version ({version}); this server reads up to {FORMAT_VERSION}"
        )


class ThreadRecord(WireModel):
    """First line of a thread. Times are seconds since 1970.

    `source`: kind of client that it was made for; `tools`: tools that the client provides.
    """

    type: Literal["thread"] = "thread"
    at: Moment
    version: Annotated[int, Field(ge=1, le=FORMAT_VERSION)] = FORMAT_VERSION
    id: str
    source: str = APP_SERVER
    settings: ThreadSettings
    tools: list[DynamicTool] | None = None


def first_record(
    timestamp: float,
    thread_id: str,
    source: str,
    settings: ThreadSettings,
    tools: list[DynamicTool],
) -> ThreadRecord:
    """Return the first record of a thread."""
    first = ThreadRecord(at=timestamp, id=thread_id, source=source, settings=settings)
    return first.model_copy(update={"tools": tools}) if tools else first


class NameRecord(WireModel):
    """The user named the thread; None removed the name."""

    type: Literal["name"] = "name"
    at: Moment
    name: str | None


class RollbackRecord(WireModel):
    """The last turns were dropped, with their part of the conversation with the model."""

    type: Literal["rollback"] = "rollback"
    at: Moment
    num_turns: Annotated[int, Field(ge=1)]


class TurnStartedRecord(WireModel):
    """A turn began, with these settings, which are the thread's from then on.

    `server`: the id of the server that runs it; as long as that server runs, a turn without a
    recorded end is in progress.
    """

    type: Literal["turn-started"] = "turn-started"
    at: Moment
    turn_id: str
    settings: ThreadSettings
    server: str | None = None


class ItemRecord(WireModel):
    """An item was completed."""

    type: Literal["item"] = "item"
    at: Moment
    turn_id: str
    item: ThreadItem


class ReplacedItem(WireModel):
    """A new item for index `-from_end` of the conversation."""

    from_end: Annotated[int, Field(ge=1)]
    item: ModelItem


class HistoryRecord(WireModel):
    """Responses API items were appended to the conversation with the model.

    `steered`: ids of user messages among them that SteeredRecords have recorded before.
    `replaced`: replacements of earlier items that the provider rejected. `tokens`: those of the
    model call that returned the items; without items, those of a call outside this conversation.
    """

    type: Literal["history"] = "history"
    at: Moment
    turn_id: str
    items: list[ModelItem]
    steered: list[str] | None = None
    replaced: list[ReplacedItem] | None = None
    tokens: TokenCounts | None = None


class SteeredRecord(WireModel):
    """Input added to a running turn: `item` for clients, `history` as a Responses API item.

    It joins the history at the end of the turn unless a HistoryRecord adds it before.
    """

    type: Literal["steered"] = "steered"
    at: Moment
    turn_id: str
    item: UserMessageItem
    history: ModelItem


class CompactedRecord(WireModel):
    """The conversation with the model was compacted; from here on it is `history`.

    `tokens`: those of the model call that made the summary.
    """

    type: Literal["compacted"] = "compacted"
    at: Moment
    turn_id: str
    history: list[ModelItem]
    tokens: TokenCounts | None = None


class TurnCompletedRecord(WireModel):
    """A turn ended. A turn without this record is running, or its server was killed."""

    type: Literal["turn-completed"] = "turn-completed"
    at: Moment
    turn_id: str
    status: TurnStatus
    error: TurnError | None


Record = Annotated[
    ThreadRecord
    | NameRecord
    | RollbackRecord
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
    """Parse one line. Raises pydantic.ValidationError or NewerFormat (both a ValueError)."""
    if not _adapter:
        _adapter.append(TypeAdapter(Record))
    try:
        return _adapter[0].validate_json(line)
    except ValueError:
        if (version := _newer_version(line)) is not None:
            raise NewerFormat(version) from None
        raise


def _newer_version(line: bytes) -> int | None:
    """Return the version of a thread record that is newer than this server knows, else None."""
    try:
        # Every version has these two fields.
        record: Any = json.loads(line)
        kind, version = record["type"], record["version"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    newer = kind == "thread" and type(version) is int and version > FORMAT_VERSION
    return version if newer else None
