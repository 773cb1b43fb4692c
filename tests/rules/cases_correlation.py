"""Cases of the rules on server requests, notifications, and the harness's own responses."""

from harness.judge.verdict import Level
from tests.rules.approval_talk import COMMAND, FILE, Approvals, command_item
from tests.rules.case import Case, Found, silent
from tests.rules.traces import Talk

ASKED = "request item/commandExecution/requestApproval id 0"


def told() -> Talk:
    """Return a talk with a notification of the client."""
    return Talk().sends({"method": "initialized"})


def running() -> Approvals:
    return Approvals().running()


CASES = [
    Case(
        rule="shape.server-request",
        good=running().approved().patched(),
        witnesses=(f"server request {COMMAND}", f"server request {FILE}"),
        bad=Approvals()
        .question(command="touch made.txt")
        .question(method=FILE, reason=["why"])
        .says({"method": FILE, "id": 2, "params": {"threadId": "thr_1", "turnId": "turn_1"}}),
        found=(
            Found(f"server request {COMMAND}", (0,)),
            Found(f"server request {FILE}", (1,)),
            Found(f"server request {FILE}", (2,)),
        ),
        not_exercised=silent().says({"method": "item/tool/call", "id": 0, "params": {"tool": 7}}),
    ),
    Case(
        rule="server-request.id-unique",
        good=running().approved().says({"method": COMMAND, "id": 0, "params": {}}),
        witnesses=(ASKED,),
        bad=Approvals().question().says({"method": "item/tool/call", "id": 0, "params": {}}),
        found=(Found("request item/tool/call id 0", (0, 1)),),
        not_exercised=silent().says({"method": COMMAND, "id": None, "params": {}}),
    ),
    Case(
        rule="method.right-form",
        good=Approvals().question(),
        witnesses=(f"method {COMMAND}",),
        bad=Talk()
        .tells(COMMAND, threadId="thr_1")
        .says({"method": "turn/started", "id": 7, "params": {}}),
        found=(Found(f"method {COMMAND}", (0,)), Found("method turn/started", (1,))),
        not_exercised=silent().tells("ask/me").says({"method": "tell/me", "id": 0, "params": {}}),
    ),
    Case(
        rule="notification.not-answered",
        good=told().asks("thread/read", threadId="thr_1").refuses(),
        witnesses=("notification initialized",),
        bad=told()
        .says({"id": None, "error": {"code": -32601, "message": "unknown method"}})
        .says({"result": {}}),
        found=(
            Found("notification initialized", (0, 1), Level.SHOULD),
            Found("notification initialized", (0, 2), Level.SHOULD),
        ),
        not_exercised=silent()
        .says({"id": None, "error": {}})
        .sends(b"{", deliberate=True)
        .sends({"method": "initialized"})
        .says({"id": None, "error": {}}),
    ),
    Case(
        rule="turn.streamed",
        good=running().asks("thread/list").answers({}).end_turn(),
        witnesses=("turn turn_1",),
        bad=Approvals().policy().ask_turn().reply_turn().started(command_item()).question(),
        found=(Found("turn turn_1", (6,)),),
        not_exercised=running().end_turn(),
    ),
    Case(
        rule="harness.own-answer",
        good=running().approved().patched("declined", "decline"),
        witnesses=(f"own answer to {COMMAND}", f"own answer to {FILE}"),
        bad=running()
        .question()
        .decides("approved")
        .question(method=FILE)
        .decides("cancel")
        .decides("accept")
        .sends({"id": 9, "result": {}})
        .sends({"id": "1", "error": {"code": 1, "message": "no"}})
        .question()
        .sends({"id": 2, "result": {"decision": "accept"}, "error": {"code": 1, "message": "no"}}),
        found=(
            Found(f"own answer to {COMMAND}", (9, 10)),
            Found(f"own answer to {FILE}", (11, 12)),
            Found(f"own answer to {FILE}", (11, 12, 13)),
            Found("own answer", (14,)),
            Found("own answer", (15,)),
            Found(f"own answer to {COMMAND}", (16, 17)),
        ),
        # Wrong on purpose, and what no answer can name.
        not_exercised=running()
        .question()
        .decides("approved", deliberate=True)
        .decides("decline")
        .says({"method": COMMAND, "id": None, "params": {}})
        .sends({"id": None, "error": {"code": 1, "message": "no"}}),
    ),
    Case(
        rule="harness.own-request-id",
        good=silent().sends({"method": "thread/read", "id": 1, "params": {}}),
        witnesses=("own request ids",),
        bad=Talk()
        .sends({"method": "thread/read", "id": 1, "params": {}})
        .sends({"method": "thread/list", "id": 1, "params": {}}),
        found=(Found("own request ids", (0, 1)),),
        not_exercised=Approvals()
        .question()
        .decides("accept")
        .sends({"method": "thread/read", "id": 1, "params": {}}, deliberate=True),
    ),
]
