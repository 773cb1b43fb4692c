"""Rules on the members of a tool call that show its outcome, beside its status."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Monitor, Outcomes, Witness, on, rule
from harness.judge.rules.shared.view_queries import is_own_turn, item_in
from harness.judge.rules.shared.violations import member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame

MCP, DYNAMIC = "mcpToolCall", "dynamicToolCall"
# For each status of an MCP tool call, the members that it cannot have.
_FORBIDDEN_MEMBERS = {"inProgress": ("result", "error"), "completed": ("error",)}
_SUCCESS_OF_STATUS = {"completed": True, "failed": False}


class _ToolCallRule(Monitor):
    """Base of rules on the items of one type of tool call."""

    type = ""

    def _status(self, frame: Frame) -> str:
        """Return the status of the item in a frame, "" if it is of another type."""
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
class McpOutcomeFits(_ToolCallRule):
    """Judges that an mcpToolCall in progress has no result and no error, a completed one no error.

    The specification names the status at which each of them exists; that it does not at another is
    derived, so SHOULD. Left open: the result of a failed call, which may be the tool's output, and
    members that are null or empty.
    """

    type = MCP

    @on("item/started", "item/completed")
    def on_item(self, frame: Frame) -> Outcomes:
        status, shows = self._status(frame), item_in(frame)
        if status not in _FORBIDDEN_MEMBERS:
            return None
        item = self.conversation.item_of(frame)
        assert item is not None
        for name in _FORBIDDEN_MEMBERS[status]:
            if obj(shows.get(name)):
                field, also = member(frame, "item", name), (member(frame, "item", "status"),)
                expected = f"null or nothing, since the call is {status}"
                return [wrong(item.subject, (frame,), field, expected, also=also)]
        return [Witness(item.subject, (frame,))]


@rule(
    "dynamic.success-fits-status",
    title="The success of a client's tool fits the status of its call",
    level=Level.SHOULD,
    needs=("dynamic-tools",),
)
class SuccessFits(_ToolCallRule):
    """Judges that a dynamicToolCall that ends completed has success true, and a failed one false.

    One of the two words for its end means success, so SHOULD. A completed call without success is
    INFO: the call was carried out, and the specification does not say which of the two the status
    is about. Left open: calls that do not report their success.
    """

    type = DYNAMIC

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        status, success = self._status(frame), item_in(frame).get("success")
        if status not in _SUCCESS_OF_STATUS or not isinstance(success, bool):
            return None
        item = self.conversation.item_of(frame)
        assert item is not None
        if success is _SUCCESS_OF_STATUS[status]:
            return [Witness(item.subject, (frame,))]
        field, also = member(frame, "item", "success"), (member(frame, "item", "status"),)
        expected = f"{literal(_SUCCESS_OF_STATUS[status])}, since the call is {status}"
        level = Level.INFO if status == "completed" else None
        return [wrong(item.subject, (frame,), field, expected, also=also, level=level)]
