"""Rules on the status of an item, and on members that depend on it."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Monitor, Outcomes, Violation, Witness, on, rule
from harness.judge.rules.shared.approval_queries import DENYING, ApprovalMonitor
from harness.judge.rules.shared.state_tracking import (
    FINISHED,
    item_state,
    status_begins,
    status_ends,
)
from harness.judge.rules.shared.view_queries import is_own_turn, item_in
from harness.judge.rules.shared.violations import member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.machines import ITEM_STATUS
from harness.protocol.values import MISSING, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.order import by_arrival
from harness.trace.views import ItemView

MCP = "mcpToolCall"


def _status(item: ItemView | None, frame: Frame) -> str:
    """The status in an item event, "" where its type has no such status."""
    if item is None or item.type not in ITEM_STATUS:
        return ""
    status = text(item_in(frame).get("status"))
    return status if status in ITEM_STATUS[item.type].states else ""


@rule(
    "item.begins-in-progress",
    title="An item begins in progress",
    level=Level.SHOULD,
    needs=("command-execution",),
)
class BeginsInProgress(Monitor):
    """Judges that item/started of an item that has a status carries the one that work begins with.

    Commands, file changes and tool calls have one. Derived: item/started comes when work begins,
    and of the values only inProgress is not an outcome; SHOULD, since the text does not say which
    value it carries. Left open: words that are no status of the type (shapes).
    """

    @on("item/started")
    def on_item_started(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        status = _status(item, frame)
        if item is None or not status or not is_own_turn(self.conversation, item.turn):
            return None
        begins = status_begins(item.type)
        if status == begins:
            return [Witness(item.subject, (frame,))]
        where, expected = member(frame, "item", "status"), f"{literal(begins)}, as the item begins"
        return [wrong(item.subject, (frame,), where, expected)]


@rule(
    "item.final-status",
    title="A completed item has a final status",
    level=Level.MUST,
    needs=("command-execution",),
)
class FinalStatus(ApprovalMonitor):
    """Judges that item/completed of an item that has a status carries one that its type ends with.

    Commands and file changes end completed, failed or declined, tool calls completed or failed.
    For work that an interrupt of the turn cut off, or cancel in it, the text has no word: INFO,
    unless the client had denied it, for which there is one. Left open: which of them, words that
    are no status of the type (shapes), items without a status.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        status = _status(item, frame)
        if item is None or not status or not is_own_turn(self.conversation, item.turn):
            return None
        ends = status_ends(item.type)
        if status in ends:
            return [Witness(item.subject, (frame,))]
        where, expected = member(frame, "item", "status"), f"one of {', '.join(ends)}"
        decisions = self.decisions(item)
        denied = bool(decisions) and decisions <= DENYING
        cut_off = self.may_be_cut(item.turn) and not denied
        level = Level.INFO if cut_off else None
        return [wrong(item.subject, (frame,), where, expected, level=level)]


class _McpOutcome(ApprovalMonitor):
    """A completed mcpToolCall of one status has one member, an object."""

    status = ""
    member = ""

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item, whole = self.conversation.item_of(frame), item_in(frame)
        if item is None or item.type != MCP or whole.get("status") != self.status:
            return None
        if not is_own_turn(self.conversation, item.turn):
            return None
        value = whole.get(self.member, MISSING)
        if value is not MISSING and value is not None:
            return [Witness(item.subject, (frame,))]
        where, status = member(frame, "item", self.member), member(frame, "item", "status")
        cut_off = self.status == "failed" and self.may_be_cut(item.turn)
        level = Level.SHOULD if cut_off else None
        return [wrong(item.subject, (frame,), where, "an object", also=(status,), level=level)]


@rule(
    "mcp.result-when-completed",
    title="A completed MCP tool call has its result",
    level=Level.MUST,
    needs=("mcp-tools",),
)
class McpResult(_McpOutcome):
    """Judges that an mcpToolCall that is completed with status completed has a result.

    Left open: what is in it, and a result that is no object (shapes).
    """

    status = "completed"
    member = "result"


@rule(
    "mcp.error-when-failed",
    title="A failed MCP tool call has its error",
    level=Level.MUST,
    needs=("mcp-tools",),
)
class McpError(_McpOutcome):
    """Judges that an mcpToolCall that is completed with status failed has an error.

    SHOULD for a call that an interrupt of the turn cut off, or cancel in it: whether it failed the
    text does not say. Left open: what is in it, a result beside it, and an error that is no object
    (shapes).
    """

    status = "failed"
    member = "error"


@rule(
    "mcp.progress-of-call",
    title="Progress is told of a call that is under way",
    level=Level.MUST,
    needs=("mcp-tools",),
)
class McpProgress(ApprovalMonitor):
    """Judges that item/mcpToolCall/progress comes while an mcpToolCall is begun and not completed.

    The payload is not shown, so any call of the connection will do. After the last one it weighs
    SHOULD, since the place of these messages is not given. Left open: connections that resumed or
    forked a thread, which may have come in the middle of a call; what may be about a call of
    another client, on a thread that this one did not start; when progress must be told.
    """

    def begin(self) -> None:
        super().begin()
        self._calls: dict[str, ItemView] = {}

    @on("item/started")
    def on_item_started(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is not None and item.type == MCP:
            self._calls[item.subject] = item
        return None

    @on("item/mcpToolCall/progress")
    def on_item_mcp_tool_call_progress(self, frame: Frame) -> Outcomes:
        opened = [thread for thread in self.conversation.threads.values() if thread.opened]
        if any(answer is not thread.reply for thread in opened for answer in thread.opened):
            return None
        named = obj(frame.params).get("threadId")
        if not self.alone() or (named is not None and named not in [one.id for one in opened]):
            return None
        subject = "progress of MCP tool calls"
        calls = self._calls.values()
        running = [call for call in calls if item_state(call, before=frame) != FINISHED]
        if running:
            return [Witness(subject, (running[0].started[-1], frame))]
        expected = "an mcpToolCall that is under way"
        if not self._calls:
            return [Violation(subject, (frame,), expected, "none was started")]
        last = by_arrival(call.completed[-1] for call in calls)[-1]
        call = next(call for call in calls if call.completed[-1] is last)
        frames, actual = (last, frame), f"the last one, {call.subject}, is completed"
        places = (member(last, "item", "id").place,)
        return [Violation(subject, frames, expected, actual, Level.SHOULD, places=places)]
