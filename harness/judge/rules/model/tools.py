"""Rule on the MCP tool calls that the model requests.

It uses the marks of the scripted model, which calls only offered tools.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Outcome, Outcomes, Witness, on_kind, rule
from harness.judge.rules.model.notifications import EndOfTraceRule
from harness.judge.rules.shared.turn_calls import TurnCalls, is_completed
from harness.judge.rules.shared.view_queries import item_in
from harness.judge.rules.shared.violations import absent, member
from harness.judge.verdict import Level
from harness.protocol.values import text
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.marks import ModelEnd
from harness.trace.views import ItemView


@rule(
    "mcp.tool-called",
    title="A tool of an MCP server that the model calls is called",
    level=Level.MUST,
    needs=("mcp-tools",),
)
class McpToolCalled(EndOfTraceRule):
    """Judges that a completed turn whose model called a tool of an MCP server shows that call.

    The tool was offered to the model, so the agent has it: there is an mcpToolCall item with this
    tool, whatever its outcome. Left open: the server's name in the item and a longer name of the
    tool, the same tool called twice in a turn, incomplete answers, turns in which the server asked
    the client anything (it may have been about the call), that were interrupted or did not
    complete; several threads or turns at once.
    """

    def begin(self) -> None:
        super().begin()
        self._turns_with_questions: set[str] = set()

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Outcomes:
        self._turns_with_questions.add(self.conversation.key_of(frame))
        return None

    def judge(self, turn_calls: TurnCalls, end: Frame) -> Iterator[Outcome]:
        turn = self.conversation.turns.get(turn_calls.turn_id)
        if turn is None or not is_completed(end) or turn.interrupts:
            return
        if turn_calls.turn_id in self._turns_with_questions:
            return
        shown_calls = [item for item in turn.items.values() if item.type == "mcpToolCall"]
        for server, tool in sorted(_called_tools(turn_calls.ends)):
            subject = f"{tool} of {server} in {turn_calls.subject}"
            item = next(
                (shown_call for shown_call in shown_calls if tool in _tool_name(shown_call)), None
            )
            if item is not None:
                frame = (item.completions or item.starts)[-1]
                yield Witness(subject, (turn_calls.request, frame, end))
                continue
            expected = f"an mcpToolCall of {literal(tool)}, which the model called"
            other_names = ", ".join(literal(_tool_name(shown_call)) for shown_call in shown_calls)
            actual = f"calls of {other_names} only" if other_names else "no mcpToolCall"
            status = member(end, "turn", "status")
            yield absent(subject, (turn_calls.request, end), expected, actual, status)


def _called_tools(ends: list[ModelEnd]) -> set[tuple[str, str]]:
    return {
        (tool_call.server, tool_call.tool)
        for call in ends
        if call.is_complete
        for tool_call in call.mcp
    }


def _tool_name(item: ItemView) -> str:
    frames = item.completions or item.starts
    return text(item_in(frames[-1]).get("tool")) if frames else ""
