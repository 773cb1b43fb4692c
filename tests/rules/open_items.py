"""Other choices at open points of items and their notifications."""

from typing import Any

from tests.rules.approval_talk import Approvals, file_item
from tests.rules.open_point import Otherwise, Untried, Why
from tests.rules.traces import (
    THREAD,
    TURN,
    Talk,
    agent_message,
    command,
    dynamic_call,
    mcp_call,
    settings,
    step,
    thread_object,
    turn_object,
    user_message,
)

OUTPUT = "item/commandExecution/outputDelta"
SUMMARY = "item/reasoning/summaryTextDelta"
PART_ADDED = "item/reasoning/summaryPartAdded"
RAW = "item/reasoning/textDelta"


def running() -> Talk:
    return Talk().start_thread().start_turn()


def _ran(status: str, code: int, *deltas: str, output: Any = "") -> Talk:
    talk = running().started(command("c1"))
    for delta in deltas:
        talk.delta("c1", delta, method=OUTPUT)
    return talk.completed(command("c1", status, exitCode=code, aggregatedOutput=output)).end_turn()


def _read_with(*ids: str) -> Talk:
    talk = Talk().start_thread().plain_turn()
    items = [user_message(ids[0], "hello"), agent_message(ids[1], "Hello")]
    return talk.read(turn_object(TURN, "completed", items=items))


def _same_ids_in_each_turn() -> Talk:
    talk = Talk().start_thread()
    for turn in ("turn_1", "turn_2"):
        talk.ask_turn().reply_turn(turn).status("active").turn_started(turn)
        talk.item(user_message("item_0", "hello"), turn)
        talk.message("item_1", "Hel", "lo", turn=turn).end_turn(turn)
    return talk


def _one(item: dict[str, Any]) -> Talk:
    return running().item(item).end_turn()


def _nulls() -> Talk:
    nothing = dict.fromkeys(("processId", "aggregatedOutput", "exitCode", "durationMs"))
    talk = running().started(command("c1", **nothing))
    talk.completed(command("c1", "completed", **nothing))
    return talk.item({**agent_message("m", "a"), "phase": None}).end_turn()


def _changed(*diffs: str, status: str = "completed", **change: Any) -> Talk:
    item = file_item(status=status)
    item["changes"] = [{**item["changes"][0], **change}]
    talk = Approvals().running("never").item(item)
    for diff in diffs:
        talk.tells("turn/diff/updated", threadId=THREAD, turnId=TURN, diff=diff)
    return talk.message("m", "a").end_turn()


def _reasoned(*indexes: int, announced: bool = True, raw: int | None = None) -> Talk:
    talk = running().started({"type": "reasoning", "id": "r", "summary": [], "content": []})
    where = {"threadId": THREAD, "turnId": TURN, "itemId": "r"}
    for index in indexes:
        if announced:
            talk.tells(PART_ADDED, **where, summaryIndex=index)
        talk.delta("r", f"part {index}", method=SUMMARY, summaryIndex=index)
    if raw is not None:
        talk.delta("r", "raw", method=RAW, contentIndex=raw)
    summary = [f"part {index}" for index in indexes]
    content = ["raw"] if raw is not None else []
    done = {"type": "reasoning", "id": "r", "summary": summary, "content": content}
    return talk.completed(done).message("m", "a").end_turn()


def _planned(**more: Any) -> Talk:
    params = {"threadId": THREAD, "turnId": TURN, "plan": [step("a", "inProgress")], **more}
    return running().tells("turn/plan/updated", **params).message("m", "a").end_turn()


def _review(*, leaves: bool, status: str = "completed") -> Talk:
    talk = running().item({"type": "enteredReviewMode", "id": "r1", "review": "changes"})
    if leaves:
        talk.item({"type": "exitedReviewMode", "id": "r2", "review": "all is well"})
    if status == "interrupted":
        talk.interrupt().answers({})
    return talk.end_turn(status=status)


def _payloads() -> Talk:
    talk = Talk().start_thread().plain_turn()
    talk.tells("thread/name/updated", title={"was": None, "is": "x"})
    talk.tells("thread/tokenUsage/updated", n=1)
    talk.tells("thread/unarchived", rollout="x.jsonl")
    return talk.tells("thread/closed", at=3)


def _dynamic(*, called: bool) -> Talk:
    """A dynamic tool is called by a request of another name, or its offer is refused."""
    tools = [{"name": "look", "description": "looks", "inputSchema": {"type": "object"}}]
    talk = Talk().asks("thread/start", cwd="/home/user/project", dynamicTools=tools)
    if not called:
        return talk.refuses("unknown field dynamicTools")
    talk = running()
    item = {"type": "dynamicToolCall", "id": "d", "tool": "look", "arguments": {}}
    talk.started({**item, "status": "inProgress"})
    talk.says({"method": "tool/run", "id": 9, "params": {"name": "look"}})
    talk.sends({"id": 9, "result": {"ok": True}})
    return talk.completed({**item, "status": "completed", "success": True}).end_turn()


def _asked_of_the_client(*, answer: dict[str, Any] | None) -> Talk:
    """A client's tool is called; the client answers, or nobody waits for it."""
    talk = running().started(dynamic_call("d"))
    about = {"threadId": THREAD, "turnId": TURN, "callId": "d", "tool": "look", "arguments": {}}
    talk.says({"method": "item/tool/call", "id": 9, "params": about})
    return talk if answer is None else talk.sends({"id": 9, **answer})


def _fails_the_turn() -> Talk:
    talk = _asked_of_the_client(answer={"error": {"code": -32603, "message": "it broke"}})
    error = {"message": "a tool broke", "agentErrorInfo": "Other"}
    talk.completed(dynamic_call("d", "failed"))
    return talk.end_turn(status="failed", error=error)


def _brings(name: str) -> Talk:
    """A client brings a tool, and is let."""
    tools = [{"name": name, "description": "", "inputSchema": {"type": "object"}}]
    talk = Talk().asks("thread/start", dynamicTools=tools)
    talk.answers({"thread": thread_object(), **settings()})
    return talk.tells("thread/started", thread=thread_object()).plain_turn()


def _without_its_mcp_server(*, told: bool) -> Talk:
    """No turn without the configured tools; or a notification of the server's own."""
    talk = running()
    if told:
        talk.tells("mcpServer/startupStatus/updated", name="tiny", status="failed")
        return talk.message("m", "a").end_turn()
    error = {"message": "tiny cannot be started", "agentErrorInfo": "Other"}
    talk.tells("error", threadId=THREAD, turnId=TURN, willRetry=False, error=error)
    return talk.end_turn(status="failed", error=error)


OTHERWISE = [
    Otherwise("item.id-stable", "has other ids in history", lambda: _read_with("x1", "x2")),
    Otherwise("item.id-scope", "counts items anew in each turn", _same_ids_in_each_turn),
    Otherwise("rpc.optional-null", "has null for what does not apply", _nulls),
    Otherwise(
        "item.user-message-emitted",
        "shows no item for the input",
        lambda: (
            Talk()
            .start_thread()
            .ask_turn()
            .reply_turn()
            .status("active")
            .turn_started()
            .message("m", "a")
            .end_turn()
        ),
    ),
    Otherwise(
        "item.exit-code-status", "says completed", lambda: _ran("completed", 3, output="no\n")
    ),
    Otherwise(
        "item.output-size",
        "keeps the end alone",
        lambda: _ran("completed", 0, "a\n" * 50, "b\n" * 50, output="b\n" * 50),
    ),
    Otherwise(
        "item.output-size",
        "cuts the middle and says so",
        lambda: _ran(
            "completed", 0, "a\n" * 50, "b\n" * 50, output="a\n" * 5 + "[cut]" + "b\n" * 5
        ),
    ),
    Otherwise(
        "item.output-order",
        "has one stream after the other",
        lambda: _ran("completed", 0, "out\n", "err\n", "out2\n", output="out\nout2\nerr\n"),
    ),
    Otherwise("item.dynamic-tool-flow", "refuses the offer", lambda: _dynamic(called=False)),
    Otherwise(
        "item.dynamic-tool-flow",
        "calls the tool by another request",
        lambda: _dynamic(called=True),
    ),
    Otherwise("item.dynamic-tool-names", "takes any name", lambda: _brings("a b c")),
    Otherwise(
        "item.dynamic-call-asked",
        "does not wait for an answer",
        lambda: _asked_of_the_client(answer=None).completed(dynamic_call("d", "failed")).end_turn(),
    ),
    Otherwise("item.dynamic-call-failed", "fails the turn", _fails_the_turn),
    Otherwise(
        "item.dynamic-call-failed",
        "takes an error for a result",
        lambda: (
            _asked_of_the_client(answer={"error": {"code": 1, "message": "no"}})
            .completed(dynamic_call("d", "completed"))
            .end_turn()
        ),
    ),
    Otherwise(
        "item.dynamic-success",
        "says completed",
        lambda: running().item(dynamic_call("d", "completed", success=False)).end_turn(),
    ),
    Otherwise(
        "item.mcp-tool-error",
        "says completed, with a result that tells of it",
        lambda: (
            running()
            .item(mcp_call("t", "completed", result={"content": [], "isError": True}))
            .end_turn()
        ),
    ),
    Otherwise(
        "item.mcp-tool-error",
        "has the result beside the error",
        lambda: (
            running()
            .item(mcp_call("t", "failed", result={"isError": True}, error={"message": "no"}))
            .end_turn()
        ),
    ),
    Otherwise(
        "item.mcp-server-missing",
        "fails the turn",
        lambda: _without_its_mcp_server(told=False),
    ),
    Otherwise(
        "item.mcp-server-missing",
        "says so by a notification of its own",
        lambda: _without_its_mcp_server(told=True),
    ),
    Otherwise(
        "item.mcp-server-missing",
        "says nothing of it",
        lambda: running().message("m", "a").end_turn(),
    ),
    Otherwise(
        "item.mcp-progress",
        "tells none",
        lambda: running().item(mcp_call("t", "completed", result={"content": []})).end_turn(),
    ),
    Otherwise(
        "item.review-begins",
        "has no such method",
        lambda: (
            Talk()
            .start_thread()
            .asks("review/start", threadId=THREAD, target={"type": "uncommittedChanges"})
            .refuses("unknown method")
        ),
    ),
    Otherwise(
        "item.review-detached",
        "reviews in the same thread",
        lambda: (
            Talk()
            .start_thread()
            .plain_turn()
            .asks(
                "review/start",
                threadId=THREAD,
                target={"type": "uncommittedChanges"},
                delivery="detached",
            )
            .answers({"turn": turn_object("turn_2"), "reviewThreadId": THREAD})
            .status("active")
            .turn_started("turn_2")
            .item({"type": "enteredReviewMode", "id": "r1", "review": "changes"}, "turn_2")
            .item({"type": "exitedReviewMode", "id": "r2", "review": "well"}, "turn_2")
            .end_turn("turn_2")
        ),
    ),
    Otherwise(
        "item.review-cut",
        "does not lead out of the review",
        lambda: _review(leaves=False, status="interrupted"),
    ),
    Otherwise("item.review-cut", "leads out and says no message", lambda: _review(leaves=True)),
    Otherwise(
        "item.message-phase",
        "has a number",
        lambda: _one({**agent_message("m", "a"), "phase": 3}),
    ),
    Otherwise(
        "item.message-phase",
        "has a word of its own",
        lambda: _one({**agent_message("m", "a"), "phase": "epilogue"}),
    ),
    Otherwise(
        "item.command-action-fields",
        "has members of its own",
        lambda: _one(command("c1", "completed", commandActions=[{"verb": "list", "of": [1]}])),
    ),
    Otherwise(
        "item.command-action-fields",
        "finds no action",
        lambda: _one(command("c1", "completed", commandActions=[])),
    ),
    Otherwise(
        "item.file-change-kind",
        "has a word",
        lambda: _changed("+++ b/made.txt\n", kind="created"),
    ),
    Otherwise(
        "item.file-change-kind",
        "has a number",
        lambda: _changed("+++ b/made.txt\n", kind=1),
    ),
    Otherwise(
        "item.file-change-diff",
        "has the whole file",
        lambda: _changed("+++ b/made.txt\n", diff="new\nand more\n"),
    ),
    Otherwise(
        "item.file-change-diff",
        "has an ed script",
        lambda: _changed("+++ b/made.txt\n", diff="0a\nnew\n.\nw\n"),
    ),
    Otherwise(
        "item.web-search-payloads",
        "has members of its own",
        lambda: _one(
            {
                "type": "webSearch",
                "id": "w",
                "query": "tea",
                "action": {"type": "open_page", "target": {"n": 3}},
            }
        ),
    ),
    Otherwise(
        "item.tool-result-shapes",
        "has members of its own",
        lambda: (
            running()
            .item(mcp_call("t1", "completed", result={"value": [1, {"x": None}]}))
            .item(mcp_call("t2", "failed", error={"why": 7}))
            .end_turn()
        ),
    ),
    Otherwise(
        "item.duplicate-delta",
        "sends empty ones",
        lambda: running().message("m", "", "a", "", "").end_turn(),
    ),
    Otherwise(
        "item.reasoning-indexes",
        "counts from 1, with a gap",
        lambda: _reasoned(1, 3),
    ),
    Otherwise(
        "item.reasoning-indexes",
        "counts raw blocks from 1",
        lambda: _reasoned(0, raw=1),
    ),
    Otherwise(
        "item.summary-boundary",
        "announces no section",
        lambda: _reasoned(0, announced=False),
    ),
    Otherwise("event.diff-when-none", "tells no diff", lambda: _changed(status="failed")),
    Otherwise(
        "event.diff-often",
        "tells it three times",
        lambda: _changed("+++ b/made.txt\n", "+++ b/made.txt\n", "+++ b/made.txt\n"),
    ),
    Otherwise(
        "event.diff-paths",
        "writes whole paths",
        lambda: _changed("--- /dev/null\n+++ /home/user/project/made.txt\n@@ -0,0 +1 @@\n+new\n"),
    ),
    Otherwise(
        "event.diff-paths",
        "writes them without a and b",
        lambda: _changed("--- /dev/null\n+++ made.txt\n@@ -0,0 +1 @@\n+new\n"),
    ),
    Otherwise("event.plan-explanation", "leaves it out", _planned),
    Otherwise("event.plan-explanation", "has null", lambda: _planned(explanation=None)),
    Otherwise(
        "event.reroute-reason",
        "has an object",
        lambda: (
            running()
            .tells(
                "model/rerouted",
                threadId=THREAD,
                turnId=TURN,
                fromModel="mock-model",
                toModel="m-2",
                reason={"code": 3},
            )
            .message("m", "a")
            .end_turn()
        ),
    ),
    Otherwise(
        "event.file-output-content",
        "tells none",
        lambda: _changed("+++ b/made.txt\n"),
    ),
    Otherwise(
        "event.file-output-content",
        "tells a song",
        lambda: (
            Approvals()
            .running("never")
            .started(file_item())
            .delta("patch_1", "la la\n", method="item/fileChange/outputDelta")
            .completed(file_item(status="completed"))
            .tells("turn/diff/updated", threadId=THREAD, turnId=TURN, diff="+++ b/made.txt\n")
            .end_turn()
        ),
    ),
    Otherwise(
        "item.plan-made",
        "makes a plan of the whole message",
        lambda: running().item({"type": "plan", "id": "p", "text": "1. look"}).end_turn(),
    ),
    Otherwise("event.payloads", "has members of its own", _payloads),
]

UNTRIED: list[Untried] = [
    Untried(
        "item.dynamic-tools-kept",
        Why.NOT_ON_THE_WIRE,
        "a model that is not offered a tool does not call it",
    ),
]
