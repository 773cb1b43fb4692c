"""Other choices at open points of approvals and their policies."""

from typing import Any

from tests.rules.approval_talk import CWD, FILE, Approvals, command_item, file_item
from tests.rules.open_point import Otherwise, Untried, Why
from tests.rules.traces import (
    THREAD,
    TURN,
    Talk,
    mcp_call,
    user_message,
)

SECOND = "turn_2"


def _reject(*, asked: bool) -> Talk:
    """Under reject: asked all the same and refused, or told to the model alone."""
    talk = Approvals().running("reject")
    if asked:
        talk.started(command_item()).question().decides("accept").resolved()
        talk.completed(command_item(status="declined"))
    return talk.message("m", "it was not allowed").end_turn()


def _on_failure(*, asked_again: bool) -> Talk:
    """A new item for the second try; or nobody is asked and the failure stands."""
    talk = Approvals().running("on-failure").started(command_item())
    talk.completed(command_item(status="failed", exitCode=1, aggregatedOutput="read-only\n"))
    if asked_again:
        talk.approved(item="call_2")
    return talk.message("m", "done").end_turn()


def _interrupted_while_asked(how: str) -> Talk:
    """The question is left alone, or is resolved when all is over."""
    talk = Approvals().running().started(command_item()).question().interrupt()
    talk.answers({})
    if how == "resolved last":
        talk.end_turn(status="interrupted")
        return talk.resolved()
    return talk.end_turn(status="interrupted")


def _asked_again_after_session() -> Talk:
    """The words are the same and the folder is another, which this server minds."""
    talk = Approvals().running().approved(decision="acceptForSession")
    again = command_item("call_2", cwd="/home/user")
    talk.started(again).question("call_2", cwd="/home/user").decides("accept").resolved()
    return talk.completed({**again, "status": "completed"}).end_turn()


def _session_counts_for_another_folder() -> Talk:
    talk = Approvals().running().approved(decision="acceptForSession")
    return talk.item(command_item("call_2", "completed", cwd="/home/user")).end_turn()


def _answered(answer: dict[str, Any], *, ends: str = "") -> Talk:
    """An answer that is no decision, and what the server makes of it."""
    talk = Approvals().running().started(command_item()).question()
    talk.sends({"id": 0, **answer}, deliberate=True).resolved()
    status = "completed" if ends == "runs" else "declined"
    talk.completed(command_item(status=status))
    return talk.end_turn(status="interrupted" if ends == "interrupts" else "completed")


def _file_decision(decision: str, status: str) -> Talk:
    talk = Approvals().running().started(file_item()).question("patch_1", FILE)
    talk.decides(decision, deliberate=True).resolved().completed(file_item(status=status))
    if status == "completed":
        talk.tells("turn/diff/updated", threadId=THREAD, turnId=TURN, diff="+++ b/made.txt\n")
    return talk.message("m", "a").end_turn()


def _mcp_tool(action: str) -> Talk:
    """The client is asked before a tool of an MCP server is called."""
    talk = Approvals().running("on-request").started(mcp_call("t"))
    about = {"threadId": THREAD, "turnId": TURN, "serverName": "tiny", "message": "Call add?"}
    talk.says({"method": "mcpServer/elicitation/request", "id": 0, "params": about})
    talk.sends({"id": 0, "result": {"action": action}}).resolved(0)
    if action == "accept":
        talk.completed(mcp_call("t", "completed", result={"content": []}))
    else:
        talk.completed(mcp_call("t", "failed", error={"message": "the user said no"}))
    return talk.message("m", "a").end_turn()


OTHERWISE = [
    Otherwise(
        "approval-policy.trusted-commands",
        "trusts another command than we do",
        lambda: (
            Approvals()
            .running()
            .item(command_item(status="completed"))
            .message("m", "a")
            .end_turn()
        ),
    ),
    Otherwise(
        "approval-policy.trusted-commands",
        "trusts no command",
        lambda: (
            Approvals()
            .running()
            .started(command_item(command="ls"))
            .question(command=["ls"])
            .decides("accept")
            .resolved()
            .completed(command_item(status="completed", command="ls"))
            .message("m", "a")
            .end_turn()
        ),
    ),
    Otherwise(
        "approval-policy.on-failure-flow",
        "asks with an item of its own for the second try",
        lambda: _on_failure(asked_again=True),
    ),
    Otherwise(
        "approval-policy.on-failure-flow",
        "takes the failure for a result",
        lambda: _on_failure(asked_again=False),
    ),
    Otherwise(
        "approval-policy.reject-flow", "asks, and rejects all the same", lambda: _reject(asked=True)
    ),
    Otherwise("approval-policy.reject-flow", "shows no item", lambda: _reject(asked=False)),
    Otherwise(
        "approval-policy.never-blocked",
        "declines it",
        lambda: (
            Approvals()
            .running("never")
            .item(command_item(status="declined"))
            .message("m", "a")
            .end_turn()
        ),
    ),
    Otherwise(
        "approval-policy.never-blocked",
        "shows no item",
        lambda: Approvals().running("never").message("m", "it was blocked").end_turn(),
    ),
    Otherwise(
        "sandbox-mode.camel",
        "refuses the camelCase forms",
        lambda: Talk().asks("thread/start", sandbox="workspaceWrite").refuses("unknown variant"),
    ),
    Otherwise(
        "approval.several-clients",
        "asks the client alone that began the turn",
        lambda: (
            Approvals()
            .running()
            .on("c2")
            .asks("thread/loaded/list")
            .answers({"data": [THREAD], "nextCursor": None})
            .on("c1")
            .approved()
            .end_turn()
        ),
    ),
    Otherwise(
        "approval.interrupted", "says nothing of it", lambda: _interrupted_while_asked("silent")
    ),
    Otherwise(
        "approval.interrupted",
        "resolves it after the end",
        lambda: _interrupted_while_asked("resolved last"),
    ),
    Otherwise(
        "approval.scope-of-session",
        "holds it for every thread of the connection",
        lambda: (
            Approvals()
            .running()
            .approved(decision="acceptForSession")
            .end_turn()
            .start_thread("thr_2")
            .ask_turn("thr_2", approvalPolicy="untrusted")
            .reply_turn(SECOND)
            .status("active", "thr_2")
            .turn_started(SECOND, "thr_2")
            .item(user_message("u2", "hello"), SECOND, "thr_2")
            .item(command_item("call_2", "completed"), SECOND, "thr_2")
            .end_turn(SECOND, "thr_2")
        ),
    ),
    Otherwise("approval.same-operation", "minds the folder", _asked_again_after_session),
    Otherwise(
        "approval.same-operation", "does not mind the folder", _session_counts_for_another_folder
    ),
    Otherwise(
        "approval.amendment-content",
        "leaves a rule for the first word",
        lambda: (
            Approvals()
            .running()
            .approved(decision="acceptWithExecpolicyAmendment")
            .item(command_item("call_2", "completed", command="touch other.txt"))
            .end_turn()
        ),
    ),
    Otherwise("approval.mcp-tools", "asks, and calls the tool", lambda: _mcp_tool("accept")),
    Otherwise("approval.mcp-tools", "asks, and is told no", lambda: _mcp_tool("decline")),
    Otherwise(
        "approval.unknown-decision",
        "takes it for accept",
        lambda: _answered({"result": {"decision": "maybe"}}, ends="runs"),
    ),
    Otherwise(
        "approval.unknown-decision",
        "takes an error for cancel",
        lambda: _answered({"error": {"code": 1, "message": "no"}}, ends="interrupts"),
    ),
    Otherwise(
        "approval.file-decisions",
        "takes acceptForSession for decline",
        lambda: _file_decision("acceptForSession", "declined"),
    ),
    Otherwise(
        "approval.file-decisions",
        "takes cancel for decline, and goes on",
        lambda: _file_decision("cancel", "declined"),
    ),
    Otherwise(
        "approval.offered-decisions",
        "says which decisions it offers",
        lambda: (
            Approvals()
            .running()
            .started(command_item())
            .question(availableDecisions=["accept", "decline"])
            .decides("accept")
            .resolved()
            .completed(command_item(status="completed"))
            .end_turn()
        ),
    ),
    Otherwise(
        "approval.optional-params",
        "leaves both out",
        lambda: (
            Approvals()
            .running()
            .started(command_item())
            .says(
                {
                    "method": "item/commandExecution/requestApproval",
                    "id": 0,
                    "params": {
                        "threadId": THREAD,
                        "turnId": TURN,
                        "itemId": "call_1",
                        "command": ["touch", "made.txt"],
                        "cwd": CWD,
                    },
                }
            )
            .decides("accept", to=0)
            .resolved(0)
            .completed(command_item(status="completed"))
            .end_turn()
        ),
    ),
]

UNTRIED = [
    Untried(
        "approval-policy.accepted-then-stopped",
        Why.NOT_ON_THE_WIRE,
        "no message says whether a command ran within the sandbox or outside",
    ),
    Untried(
        "approval.lost-client",
        Why.NOT_ON_THE_WIRE,
        "no client is there that could be told what becomes of the question",
    ),
]
