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
    """Return the status in an item event, "" if its type has no such status."""
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
    """Judges that item/started of an item with a status carries the initial one.

    Commands, file changes and tool calls have one. Derived: item/started comes when work begins,
    and inProgress is the only value that is not an outcome; SHOULD, since the specification does
    not name the value. Left open: unknown statuses (shapes).
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
        field, expected = member(frame, "item", "status"), f"{literal(begins)}, as the item begins"
        return [wrong(item.subject, (frame,), field, expected)]


@rule(
    "item.final-status",
    title="A completed item has a final status",
    level=Level.MUST,
    needs=("command-execution",),
)
class FinalStatus(ApprovalMonitor):
    """Judges that item/completed of an item with a status carries a final one of its type.

    Commands and file changes end completed, failed or declined, tool calls completed or failed. The
    specification has no word for work that an interrupt of the turn, or cancel in it, cut off:
    INFO, unless the client had denied it, for which it has one. Left open: which of the final ones,
    unknown statuses (shapes), items without a status.
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
        field, expected = member(frame, "item", "status"), f"one of {', '.join(ends)}"
        decisions = self.decisions(item)
        denied = bool(decisions) and decisions <= DENYING
        cut_off = self.may_be_interrupted(item.turn) and not denied
        level = Level.INFO if cut_off else None
        return [wrong(item.subject, (frame,), field, expected, level=level)]


class _McpOutcomeRule(ApprovalMonitor):
    """Base of rules that an mcpToolCall that ends with `status` has the object `member`."""

    status = ""
    member = ""

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item, shows = self.conversation.item_of(frame), item_in(frame)
        if item is None or item.type != MCP or shows.get("status") != self.status:
            return None
        if not is_own_turn(self.conversation, item.turn):
            return None
        value = shows.get(self.member, MISSING)
        if value is not MISSING and value is not None:
            return [Witness(item.subject, (frame,))]
        field, status = member(frame, "item", self.member), member(frame, "item", "status")
        cut_off = self.status == "failed" and self.may_be_interrupted(item.turn)
        level = Level.SHOULD if cut_off else None
        return [wrong(item.subject, (frame,), field, "an object", also=(status,), level=level)]


@rule(
    "mcp.result-when-completed",
    title="A completed MCP tool call has its result",
    level=Level.MUST,
    needs=("mcp-tools",),
)
class McpResult(_McpOutcomeRule):
    """Judges that an mcpToolCall that is completed with status completed has a result.

    Left open: its content, and a result that is not an object (shapes).
    """

    status = "completed"
    member = "result"


@rule(
    "mcp.error-when-failed",
    title="A failed MCP tool call has its error",
    level=Level.MUST,
    needs=("mcp-tools",),
)
class McpError(_McpOutcomeRule):
    """Judges that an mcpToolCall that is completed with status failed has an error.

    SHOULD for a call that an interrupt of the turn, or cancel in it, cut off: the specification
    does not say whether it failed. Left open: its content, a result beside it, and an error that is
    not an object (shapes).
    """

    status = "failed"
    member = "error"


@rule(
    "mcp.progress-of-call",
    title="Progress is reported only for a call in progress",
    level=Level.MUST,
    needs=("mcp-tools",),
)
class McpProgress(ApprovalMonitor):
    """Judges that item/mcpToolCall/progress comes between start and completion of an mcpToolCall.

    The payload is not shown, so any call of the connection counts. After the last one it is SHOULD,
    since the specification gives no place for these messages. Left open: connections that resumed
    or forked a thread, perhaps in the middle of a call; progress that may be about a call of
    another client, on a thread that this one did not start; when progress must be reported.
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
        opened = [thread for thread in self.conversation.threads.values() if thread.opening_answers]
        if any(
            answer is not thread.reply for thread in opened for answer in thread.opening_answers
        ):
            return None
        thread_id = obj(frame.params).get("threadId")
        if not self.has_one_client() or (
            thread_id is not None and thread_id not in [thread.id for thread in opened]
        ):
            return None
        subject = "progress of MCP tool calls"
        calls = self._calls.values()
        running = [call for call in calls if item_state(call, before=frame) != FINISHED]
        if running:
            return [Witness(subject, (running[0].starts[-1], frame))]
        expected = "an mcpToolCall that is under way"
        if not self._calls:
            return [Violation(subject, (frame,), expected, "none was started")]
        last = by_arrival(call.completions[-1] for call in calls)[-1]
        call = next(call for call in calls if call.completions[-1] is last)
        frames, actual = (last, frame), f"the last one, {call.subject}, is completed"
        places = (member(last, "item", "id").place,)
        return [Violation(subject, frames, expected, actual, Level.SHOULD, places=places)]
