"""Cases of the rules on the content of tool items."""

from harness.judge.verdict import Level
from tests.rules.case import Case, Found, running
from tests.rules.traces import THREAD, TURN, Talk, agent_message, command, dynamic_call, mcp_call

CALL = "item c-1 of turn turn_1"
TOOL = "item t-1 of turn turn_1"
MESSAGE = "item m-1 of turn turn_1"
OUTPUT = "item/commandExecution/outputDelta"
PROGRESS = "item/mcpToolCall/progress"


def joined_late() -> Talk:
    """A client that came in the middle of a turn."""
    talk = Talk().asks("thread/resume", threadId=THREAD)
    return talk.answers({"thread": {"id": THREAD}})


def printing(*deltas: str) -> Talk:
    """A command that has streamed its output: seqs 0 to 9, and the deltas."""
    talk = running().started(command("c-1"))
    for delta in deltas:
        talk.delta("c-1", delta, method=OUTPUT)
    return talk


def printed(talk: Talk, output: str) -> Talk:
    """The end of the command, with its output."""
    return talk.completed(command("c-1", "completed", aggregatedOutput=output))


CASES = [
    Case(
        rule="item.completed-last",
        good=running().message("m-1", "a").started(agent_message("m-1", "")).delta("m-1", "b"),
        witnesses=(MESSAGE,),
        bad=running().message("m-1", "a").delta("m-1", "b").delta("m-1", "c"),
        found=(Found(MESSAGE, (11, 12)),),
        # Completed without a start, and an item that nobody completed.
        not_exercised=running()
        .completed(agent_message("m-1", ""))
        .delta("m-1", "a")
        .started(agent_message("m-2", ""))
        .delta("m-2", "b"),
    ),
    Case(
        rule="item.begins-in-progress",
        good=running().started(command("c-1")).started(mcp_call("t-1")),
        witnesses=(CALL, TOOL),
        bad=running().started(command("c-1", "declined")).started(mcp_call("t-1", "failed")),
        found=(Found(CALL, (9,), Level.SHOULD), Found(TOOL, (10,), Level.SHOULD)),
        # No status of the type, an item without a status, a turn of others.
        not_exercised=running()
        .started(mcp_call("t-1", "declined"))
        .started({**agent_message("m-1", ""), "status": "completed"})
        .started(command("c-2", "completed"), "turn_9", "thr_9"),
    ),
    Case(
        rule="item.final-status",
        good=running()
        .item(command("c-1", "declined"))
        .item({**command("f-1", "failed"), "type": "fileChange"})
        .item(mcp_call("t-1", "completed"))
        .item({**mcp_call("d-1", "failed"), "type": "dynamicToolCall"}),
        witnesses=(CALL, TOOL, "item f-1 of turn turn_1", "item d-1 of turn turn_1"),
        bad=running().item(command("c-1")).item(mcp_call("t-1")),
        found=(Found(CALL, (10,)), Found(TOOL, (12,))),
        not_exercised=running()
        .item(mcp_call("t-1", "declined"))
        .item({**agent_message("m-1", ""), "status": "inProgress"})
        .item(command("c-2"), "turn_9", "thr_9"),
    ),
    Case(
        rule="delta.command-output",
        # The two streams may be combined in another order than they were streamed.
        good=printed(printing("out 1\n", "err 1\n"), "err 1\nout 1\n"),
        witnesses=(CALL,),
        bad=printed(printing("la", "te\n"), "early\nlate\n"),
        found=(Found(CALL, (10, 11, 12), Level.SHOULD),),
        # No deltas, no output, and one of which the start was not seen.
        not_exercised=printed(printing(), "quiet\n")
        .started(command("c-2"))
        .delta("c-2", "x", method=OUTPUT)
        .completed(command("c-2", "completed", aggregatedOutput=None))
        .delta("c-3", "x", method=OUTPUT)
        .completed(command("c-3", "completed", aggregatedOutput="y")),
    ),
    Case(
        rule="mcp.result-when-completed",
        good=running().item(mcp_call("t-1", "completed", result={})),
        witnesses=(TOOL,),
        bad=running()
        .item(mcp_call("t-1", "completed"))
        .item(mcp_call("t-2", "completed", result=None)),
        found=(Found(TOOL, (10,)), Found("item t-2 of turn turn_1", (12,))),
        not_exercised=running()
        .item(mcp_call("t-1", "failed"))
        .item({**mcp_call("t-2", "completed"), "type": "dynamicToolCall"})
        .item(mcp_call("t-3", "completed"), "turn_9", "thr_9"),
    ),
    Case(
        rule="mcp.error-when-failed",
        good=running().item(mcp_call("t-1", "failed", error={"message": "no"})),
        witnesses=(TOOL,),
        bad=running()
        .item(mcp_call("t-1", "failed", result={}))
        .item(mcp_call("t-2", "failed", error=None)),
        found=(Found(TOOL, (10,)), Found("item t-2 of turn turn_1", (12,))),
        not_exercised=running()
        .item(mcp_call("t-1", "completed"))
        .item({**mcp_call("t-2", "failed"), "type": "dynamicToolCall"})
        .item(mcp_call("t-3", "failed"), "turn_9", "thr_9"),
    ),
    Case(
        rule="mcp.outcome-fits-status",
        good=running().item(mcp_call("t-1", "completed", result={"content": []}, error=None)),
        witnesses=(TOOL,),
        bad=running()
        .started(mcp_call("t-1", result={"content": []}))
        .completed(mcp_call("t-1", "completed", error={"message": "no"})),
        found=(Found(TOOL, (9,), Level.SHOULD), Found(TOOL, (10,), Level.SHOULD)),
        # A failed call may tell what the tool said too.
        not_exercised=running()
        .completed(mcp_call("t-1", "failed", result={"isError": True}, error={"message": "no"}))
        .started(mcp_call("t-2", "declined", error={"message": "no"}))
        .started({**mcp_call("t-3", error={"message": "no"}), "type": "dynamicToolCall"})
        .started(mcp_call("t-4", error={"message": "no"}), "turn_9", "thr_9"),
    ),
    Case(
        rule="dynamic.success-fits-status",
        good=running()
        .item(dynamic_call("d-1", "completed", success=True))
        .item(dynamic_call("d-2", "failed", success=False)),
        witnesses=("item d-1 of turn turn_1", "item d-2 of turn turn_1"),
        bad=running()
        .item(dynamic_call("d-1", "completed", success=False))
        .item(dynamic_call("d-2", "failed", success=True)),
        found=(
            Found("item d-1 of turn turn_1", (10,), Level.INFO),
            Found("item d-2 of turn turn_1", (12,), Level.SHOULD),
        ),
        not_exercised=running()
        .item(dynamic_call("d-1", "failed", success=None))
        .item(dynamic_call("d-2", "completed"))
        .item(dynamic_call("d-3", success=True))
        .item(mcp_call("t-1", "failed", success=True))
        .item(dynamic_call("d-4", "failed", success=True), "turn_9", "thr_9"),
    ),
    Case(
        rule="mcp.progress-of-call",
        good=running().started(mcp_call("t-1")).tells(PROGRESS),
        witnesses=("progress of MCP tool calls",),
        bad=running().tells(PROGRESS).item(mcp_call("t-1", "completed")).tells(PROGRESS),
        found=(
            Found("progress of MCP tool calls", (9,)),
            Found("progress of MCP tool calls", (11, 12), Level.SHOULD),
        ),
        not_exercised=joined_late().tells(PROGRESS, threadId=THREAD, turnId=TURN),
    ),
]
