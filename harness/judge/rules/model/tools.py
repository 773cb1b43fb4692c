"""A rule on what becomes of the tools of MCP servers that the model calls.

By the marks of the scripted model, which calls only what it was offered.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Outcome, Outcomes, Witness, on_kind, rule
from harness.judge.rules.model.news import News
from harness.judge.rules.shared.turn_calls import TurnCalls, came_to_its_end
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
class McpToolCalled(News):
    """Judges that a completed turn whose model called a tool of an MCP server shows that call.

    The tool was offered to the model, so the agent has it: an mcpToolCall item with this tool is
    there, whatever became of it. Left open: the server's name in the item and a longer name of the
    tool, the same tool called twice in a turn, answers that did not come to their end, turns in
    which the server asked the client anything (it may have been about the call), that were
    interrupted or did not complete; several threads or turns at once.
    """

    def begin(self) -> None:
        super().begin()
        self._asked: set[str] = set()

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Outcomes:
        self._asked.add(self.conversation.key_of(frame))
        return None

    def judge(self, asked: TurnCalls, end: Frame) -> Iterator[Outcome]:
        turn = self.conversation.turns.get(asked.turn_id)
        if turn is None or not came_to_its_end(end) or turn.interrupts:
            return
        if asked.turn_id in self._asked:
            return
        shown = [item for item in turn.items.values() if item.type == "mcpToolCall"]
        for server, tool in sorted(_called(asked.ends)):
            subject = f"{tool} of {server} in {asked.subject}"
            item = next((one for one in shown if tool in _tool(one)), None)
            if item is not None:
                frame = (item.completed or item.started)[-1]
                yield Witness(subject, (asked.request, frame, end))
                continue
            expected = f"an mcpToolCall of {literal(tool)}, which the model called"
            others = ", ".join(literal(_tool(one)) for one in shown)
            actual = f"calls of {others} only" if others else "no mcpToolCall"
            status = member(end, "turn", "status")
            yield absent(subject, (asked.request, end), expected, actual, status)


def _called(ends: list[ModelEnd]) -> set[tuple[str, str]]:
    return {(one.server, one.tool) for call in ends if call.completed for one in call.mcp}


def _tool(item: ItemView) -> str:
    frames = item.completed or item.started
    return text(item_in(frames[-1]).get("tool")) if frames else ""
