"""Rules on what a tool call shows of its outcome, beside its status."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Monitor, Outcomes, Witness, on, rule
from harness.judge.rules.shared.view_queries import is_own_turn, item_in
from harness.judge.rules.shared.violations import member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame

MCP, DYNAMIC = "mcpToolCall", "dynamicToolCall"
# For each status of an MCP tool call, what it cannot have yet, or any more.
_UNFITTING = {"inProgress": ("result", "error"), "completed": ("error",)}
_FITTING = {"completed": True, "failed": False}


class _OfTool(Monitor):
    """Judges the items of one type of tool call."""

    type = ""

    def _status(self, frame: Frame) -> str:
        """The status of the item in a frame, "" where it is of another type."""
        item = self.conversation.item_of(frame)
        if item is None or item.type != self.type or not is_own_turn(self.conversation, item.turn):
            return ""
        return text(item_in(frame).get("status"))


@rule(
    "mcp.outcome-fits-status",
    title="An MCP tool call has no outcome of another status",
    level=Level.SHOULD,
    needs=("mcp-tools",),
)
class McpOutcomeFits(_OfTool):
    """Judges that an mcpToolCall in progress has no result and no error, a completed one no error.

    The text names the status at which each of them is there; that it is not there at another is
    derived, so SHOULD. Left open: the result of a failed call, which may tell what the tool said,
    and members that are null or empty.
    """

    type = MCP

    @on("item/started", "item/completed")
    def on_item(self, frame: Frame) -> Outcomes:
        status, whole = self._status(frame), item_in(frame)
        if status not in _UNFITTING:
            return None
        item = self.conversation.item_of(frame)
        assert item is not None
        for name in _UNFITTING[status]:
            if obj(whole.get(name)):
                where, also = member(frame, "item", name), (member(frame, "item", "status"),)
                expected = f"null or nothing, since the call is {status}"
                return [wrong(item.subject, (frame,), where, expected, also=also)]
        return [Witness(item.subject, (frame,))]


@rule(
    "dynamic.success-fits-status",
    title="Whether a client's tool had success fits the status of its call",
    level=Level.SHOULD,
    needs=("dynamic-tools",),
)
class SuccessFits(_OfTool):
    """Judges that a dynamicToolCall that ends completed has success, and a failed one has none.

    Of the two words for its end one says that it went well, so SHOULD. A completed call without
    success weighs INFO: the call was carried out, and the text does not say which of the two the
    status is about. Left open: calls that do not tell their success.
    """

    type = DYNAMIC

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        status, success = self._status(frame), item_in(frame).get("success")
        if status not in _FITTING or not isinstance(success, bool):
            return None
        item = self.conversation.item_of(frame)
        assert item is not None
        if success is _FITTING[status]:
            return [Witness(item.subject, (frame,))]
        where, also = member(frame, "item", "success"), (member(frame, "item", "status"),)
        expected = f"{literal(_FITTING[status])}, since the call is {status}"
        level = Level.INFO if status == "completed" else None
        return [wrong(item.subject, (frame,), where, expected, also=also, level=level)]
