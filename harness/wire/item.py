"""Thread items, and the notifications of an item's life.

Here lives one class per item `type` and per `item/*` notification.
Source: session-protocol "ThreadItem", "Item lifecycle", "Events".
"""

from typing import Annotated, Literal

from pydantic import Field

from harness.wire.base import WireModel
from harness.wire.input import UserInput


class UserMessageItem(WireModel):
    """What the user sent."""

    type: Literal["userMessage"] = "userMessage"
    id: str
    content: list[UserInput]


class AgentMessageItem(WireModel):
    """What the agent said; the values of `phase` are not shown, so any string is let through."""

    type: Literal["agentMessage"] = "agentMessage"
    id: str
    text: str
    phase: str | None = None


class ReasoningItem(WireModel):
    """How the agent thought: summary sections, and raw blocks where the model gives them."""

    type: Literal["reasoning"] = "reasoning"
    id: str
    summary: list[str]
    content: list[str]


ThreadItem = Annotated[
    UserMessageItem | AgentMessageItem | ReasoningItem,
    Field(discriminator="type"),
]


class ItemStartedNotification(WireModel):
    """Params of `item/started`: the full item as work on it begins."""

    thread_id: str
    turn_id: str
    item: ThreadItem


class ItemCompletedNotification(WireModel):
    """Params of `item/completed`: the final item."""

    thread_id: str
    turn_id: str
    item: ThreadItem


class AgentMessageDeltaNotification(WireModel):
    """Params of `item/agentMessage/delta`: joined per itemId, the deltas are the reply."""

    thread_id: str
    turn_id: str
    item_id: str
    delta: str


class ReasoningSummaryTextDeltaNotification(WireModel):
    """Params of `item/reasoning/summaryTextDelta`; `summaryIndex` counts sections from 0."""

    thread_id: str
    turn_id: str
    item_id: str
    summary_index: int
    delta: str


class ReasoningSummaryPartAddedNotification(WireModel):
    """Params of `item/reasoning/summaryPartAdded`: section `summaryIndex` begins."""

    thread_id: str
    turn_id: str
    item_id: str
    summary_index: int


class ReasoningTextDeltaNotification(WireModel):
    """Params of `item/reasoning/textDelta`; `contentIndex` counts raw blocks from 0."""

    thread_id: str
    turn_id: str
    item_id: str
    content_index: int
    delta: str
