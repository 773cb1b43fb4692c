"""The notifications of an item's life: started, deltas, completed.

`delta` stands last in each, so that a writer can compose a line from a prefix. Source:
session-protocol "Item lifecycle", "Events".
"""

from harness.protocol.wire.base import Number, WireModel
from harness.protocol.wire.item import ThreadItem


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


class PlanDeltaNotification(WireModel):
    """Params of `item/plan/delta` (experimental): joined, they need not be the final plan."""

    thread_id: str
    turn_id: str
    item_id: str
    delta: str


class ReasoningSummaryTextDeltaNotification(WireModel):
    """Params of `item/reasoning/summaryTextDelta`; `summaryIndex` counts sections from 0."""

    thread_id: str
    turn_id: str
    item_id: str
    summary_index: Number
    delta: str


class ReasoningSummaryPartAddedNotification(WireModel):
    """Params of `item/reasoning/summaryPartAdded`: section `summaryIndex` begins."""

    thread_id: str
    turn_id: str
    item_id: str
    summary_index: Number


class ReasoningTextDeltaNotification(WireModel):
    """Params of `item/reasoning/textDelta`; `contentIndex` counts raw blocks from 0."""

    thread_id: str
    turn_id: str
    item_id: str
    content_index: Number
    delta: str


class CommandExecutionOutputDeltaNotification(WireModel):
    """Params of `item/commandExecution/outputDelta`: stdout and stderr as they come."""

    thread_id: str
    turn_id: str
    item_id: str
    delta: str


class FileChangeOutputDeltaNotification(WireModel):
    """Params of `item/fileChange/outputDelta`: output of the file-changing tool."""

    thread_id: str
    turn_id: str
    item_id: str
    delta: str
