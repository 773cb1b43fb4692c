"""Test cases for each duty of clients: traces that keep it, break it, and do not concern it."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.approval_talk import COMMAND, FILE, Approvals
from tests.rules.case import Case, Found, opened, running, silent
from tests.rules.traces import THREAD, TURN, Talk

ASKED = f"request {COMMAND} id 0"
FAILURE = {"code": 1, "message": "no"}
SKILL = "/home/user/.agent/skills/tidy/SKILL.md"


def asked() -> Approvals:
    """Return a trace with an approval request for a command as frame 0."""
    return Approvals().question()


def speaks(*inputs: Any, **more: Any) -> Talk:
    """Return a trace with a turn/start with these inputs."""
    return Talk().asks("turn/start", threadId=THREAD, input=list(inputs), **more)


def deliberate(message: Any) -> Talk:
    """Return a trace with a message that a scenario made invalid on purpose."""
    return Talk().sends(message, deliberate=True)


def lists(cursor: str | None, *, then: str | None = None, talk: Talk | None = None) -> Talk:
    """Add thread/list and its result, with `then` as the next cursor; return the trace."""
    talk = talk or Talk()
    params = {} if cursor is None else {"cursor": cursor}
    return talk.asks("thread/list", **params).answers({"data": [], "nextCursor": then})


CASES = [
    Case(
        rule="duty.answer-known",
        good=asked().decides("accept"),
        witnesses=(ASKED,),
        bad=asked()
        .sends({"id": "0", "result": {"decision": "accept"}})
        .on("c2")
        .sends({"id": 0, "error": FAILURE}),
        found=(Found("answer to id 0", (1,)), Found("answer to id 0", (2,))),
        not_exercised=Talk()
        .sends({"id": None, "error": FAILURE})
        .sends({"id": 3, "params": {}})
        .sends({"id": 4, "result": {}}, deliberate=True),
    ),
    Case(
        rule="duty.answer-once",
        good=asked().decides("accept").question().decides("decline"),
        witnesses=(ASKED, f"request {COMMAND} id 1"),
        bad=asked().decides("accept").sends({"id": 0, "error": FAILURE}),
        found=(Found(ASKED, (0, 1, 2), Level.SHOULD),),
        not_exercised=asked().sends({"id": 7, "result": {}}),
    ),
    Case(
        rule="duty.notification-unanswered",
        good=asked().tells("turn/started").decides("accept"),
        witnesses=("connection c1",),
        bad=asked().tells("turn/started").sends({"id": None, "error": FAILURE}),
        found=(Found("connection c1", (1, 2), Level.INFO),),
        not_exercised=asked()
        .sends({"id": None, "error": FAILURE})
        .tells("turn/started")
        .sends({"id": None, "error": {"code": -32700, "message": "no JSON"}}),
    ),
    Case(
        rule="duty.answer-form",
        good=asked().decides("unheard-of").question(method=FILE).sends({"id": 1, "error": FAILURE}),
        witnesses=(ASKED, f"request {FILE} id 1"),
        bad=asked()
        .sends({"id": 0, "result": {"decided": "accept"}})
        .question()
        .sends({"id": 1, "result": {"decision": "accept"}, "error": FAILURE})
        .question()
        .sends({"id": 2, "decision": "accept"})
        .question(method=FILE)
        .sends({"id": 3, "result": "accept"})
        .question()
        .sends({"id": 4})
        .says({"method": "item/tool/call", "id": 5, "params": {}})
        .sends({"id": 5, "result": None}),
        found=(
            Found(ASKED, (0, 1)),
            Found(f"request {COMMAND} id 1", (2, 3)),
            Found(f"request {COMMAND} id 2", (4, 5)),
            Found(f"request {FILE} id 3", (6, 7)),
            Found(f"request {COMMAND} id 4", (8, 9)),
            Found("request item/tool/call id 5", (10, 11), Level.SHOULD),
        ),
        not_exercised=Talk().sends({"id": 0, "result": {}}).sends({"id": 0}),
    ),
    Case(
        rule="duty.decision-known",
        good=asked().decides("applyNetworkPolicyAmendment").question(method=FILE).decides("accept"),
        witnesses=(ASKED, f"request {FILE} id 1"),
        bad=asked().decides("approved").question(method=FILE).decides("acceptForSession"),
        found=(Found(ASKED, (0, 1)), Found(f"request {FILE} id 1", (2, 3))),
        not_exercised=asked()
        .sends({"id": 0, "result": {}})
        .question()
        .sends({"id": 1, "error": FAILURE})
        .says({"method": "tool/ask", "id": 2, "params": {}})
        .sends({"id": 2, "result": {"decision": "whatever"}}),
    ),
    Case(
        rule="duty.answers",
        good=asked().decides("approved").question().sends({"id": 1, "error": FAILURE}),
        witnesses=(ASKED, f"request {COMMAND} id 1"),
        bad=asked()
        .question()
        .tells("serverRequest/resolved", requestId=1)
        .question(turn="turn_9")
        .turn_completed("turn_9")
        .says({"method": "tool/ask", "id": 8, "params": {}}),
        found=(Found(ASKED, (0,)), Found("request tool/ask id 8", (5,))),
        not_exercised=asked()
        .turn_completed()
        .question()
        .tells("serverRequest/resolved")
        .question()
        .tells("thread/closed")
        .question()
        .asks("thread/resume", threadId=THREAD)
        .says({"method": COMMAND, "id": None, "params": {}}),
    ),
    Case(
        rule="duty.message-form",
        good=Talk().sends({"method": "initialized"}).sends({"method": "model/list", "id": 1}),
        witnesses=("connection c1",),
        bad=Talk()
        .sends(b'{"method": "thread/li')
        .sends([])
        .sends({"method": 5, "id": 1, "params": {}})
        .sends({"method": "thread/list", "id": True, "params": {}})
        .sends({"method": "thread/list", "id": 2, "params": "all"})
        .sends({"id": 3, "params": {}})
        .sends({"method": "thread/list", "id": 4, "params": None})
        .sends({"id": 5})
        .sends({"method": "initialized", "params": [1]})
        .sends({"method": "initialized", "params": None})
        .sends({"method": "thread/list", "id": 6}),
        found=(
            *(Found("connection c1", (seq,)) for seq in range(8)),
            *(Found("connection c1", (seq,), Level.SHOULD) for seq in range(8, 11)),
        ),
        not_exercised=deliberate(b"{"),
    ),
    Case(
        rule="duty.id-number",
        good=Talk().sends({"method": "thread/list", "id": -0.5, "params": {}}),
        witnesses=("connection c1",),
        bad=Talk()
        .sends({"method": "thread/list", "id": "a", "params": {}})
        .sends({"method": "thread/list", "id": "b", "params": {}}),
        found=(Found("connection c1", (0,), Level.INFO),),
        not_exercised=Talk().sends({"method": "thread/list", "id": None, "params": {}}).sends(b"{"),
    ),
    Case(
        rule="duty.id-free",
        good=silent().sends({"method": "thread/read", "id": 1, "params": {}}),
        witnesses=("request thread/read id 1",),
        bad=Talk()
        .sends({"method": "thread/read", "id": 1, "params": {}})
        .sends({"method": "thread/list", "id": 1, "params": {}}),
        found=(Found("request thread/list id 1", (0, 1), Level.SHOULD),),
        not_exercised=deliberate({"method": "thread/read", "id": 1, "params": {}}),
    ),
    Case(
        rule="duty.method-known",
        good=Talk().asks("initialize").sends({"method": "initialized"}).asks("turn/steer"),
        witnesses=("method initialize", "method initialized", "method turn/steer"),
        bad=Talk().asks("model/list").asks("model/list").sends({"method": "bye"}),
        found=(
            Found("method model/list", (0,), Level.INFO),
            Found("method bye", (2,), Level.INFO),
        ),
        not_exercised=Talk().sends({"method": "turn/started"}).sends(b"{"),
    ),
    Case(
        rule="duty.right-direction",
        good=Talk().asks("thread/list"),
        witnesses=("method thread/list",),
        bad=Talk().asks(COMMAND).sends({"method": "turn/started", "params": {}}),
        found=(
            Found(f"method {COMMAND}", (0,), Level.SHOULD),
            Found("method turn/started", (1,), Level.SHOULD),
        ),
        not_exercised=Talk().asks("model/list").sends({"method": "bye"}),
    ),
    Case(
        rule="duty.request-has-id",
        good=Talk().asks("thread/list"),
        witnesses=("method thread/list",),
        bad=Talk().sends({"method": "thread/archive", "params": {"threadId": THREAD}}),
        found=(Found("method thread/archive", (0,)),),
        not_exercised=Talk().sends({"method": "initialize"}).sends({"method": "initialized"}),
    ),
    Case(
        rule="duty.handshake-first",
        good=Talk().asks("initialize").asks("thread/list").on("c2").asks("initialize"),
        witnesses=("connection c1", "connection c2"),
        bad=Talk()
        .asks("thread/list")
        .asks("initialize")
        .asks("initialize")
        .asks("initialized")
        .refuses(),
        found=(
            Found("connection c1", (0, 1), Level.INFO),
            Found("connection c1", (1, 2), Level.INFO),
            Found("connection c1", (3, 4), Level.INFO),
        ),
        not_exercised=Talk().asks("initialized").answers({}).asks_wrongly("initialized").refuses(),
    ),
    Case(
        rule="duty.remote-skills",
        good=Talk().asks("skills/list"),
        witnesses=("method skills/list",),
        bad=Talk().asks("skills/remote/export", hazelnutId="h"),
        found=(Found("method skills/remote/export", (0,), Level.SHOULD),),
        not_exercised=opened(),
    ),
    Case(
        rule="duty.params-complete",
        good=speaks({"type": "text", "text": "hello"}, approvalPolicy="unheard-of"),
        witnesses=("request turn/start id 1",),
        bad=Talk()
        .asks("turn/start", threadId=THREAD)
        .asks("turn/steer", threadId=THREAD, input=[{"type": "image"}], expectedTurnId=TURN)
        .asks("turn/start", threadId=THREAD, input=[], sandboxPolicy={"type": "readOnly"}),
        found=(
            Found("request turn/start id 1", (0,)),
            Found("request turn/steer id 2", (1,)),
            Found("request turn/start id 3", (2,), Level.SHOULD),
        ),
        not_exercised=Talk()
        .asks("thread/rollback")
        .asks("skills/remote/export")
        .asks("model/list")
        .sends({"method": "turn/start", "id": 9, "params": []}),
    ),
    Case(
        rule="duty.params-valid",
        good=speaks({"type": "mention", "name": "n", "path": "app://x"}, model=None, more=1),
        witnesses=("request turn/start id 1",),
        bad=speaks({"type": "text", "text": 5}, effort="xhigh")
        .asks("thread/start", sandbox="none", cwd=["/"])
        .asks("thread/list", sortKey="name", archived="yes")
        .asks("turn/start", threadId=None, input=[{"type": "mention", "name": "n", "path": "x"}]),
        found=tuple(
            Found(f"request {method} id {number + 1}", (number,))
            for number, method in enumerate(
                ("turn/start", "thread/start", "thread/list", "turn/start")
            )
        ),
        not_exercised=Talk().asks("thread/name/set", name=5).asks("model/list", model=5),
    ),
    Case(
        rule="duty.skill-paths",
        good=speaks({"type": "skill", "name": "tidy", "path": SKILL}),
        witnesses=("request turn/start id 1",),
        bad=Talk()
        .asks("skills/config/write", path=SKILL.removesuffix("/SKILL.md"), enabled=True)
        .asks("turn/steer", input=[{"type": "skill", "name": "tidy", "path": "SKILL.md"}]),
        found=(
            Found("request skills/config/write id 1", (0,)),
            Found("request turn/steer id 2", (1,)),
        ),
        not_exercised=speaks(
            {"type": "skill", "name": "tidy", "path": 5}, {"type": "text", "text": "a"}
        ),
    ),
    Case(
        rule="duty.cursor-given",
        good=lists("p/2", talk=lists(None, then="p/2")),
        witnesses=("request thread/list id 2",),
        bad=lists("p", talk=lists(None, then="p/2")),
        found=(Found("request thread/list id 2", (2,), Level.SHOULD),),
        not_exercised=lists("of-yesterday"),
    ),
    Case(
        rule="duty.turn-known",
        good=running().interrupt().asks("turn/steer", expectedTurnId=TURN),
        witnesses=("request turn/interrupt id 3", "request turn/steer id 4"),
        bad=running().interrupt("turn_7").asks("turn/steer", expectedTurnId="turn"),
        found=(
            Found("request turn/interrupt id 3", (9,), Level.SHOULD),
            Found("request turn/steer id 4", (10,), Level.SHOULD),
        ),
        not_exercised=opened().interrupt("turn_of_yesterday").asks("turn/steer").start_turn(),
    ),
    Case(
        rule="duty.running-turn-steered",
        good=running().turn_completed().ask_turn().reply_turn("turn_2").interrupt().ask_turn(),
        witnesses=("request turn/start id 3", "request turn/start id 5"),
        bad=running().ask_turn(),
        found=(Found("request turn/start id 3", (4, 9), Level.INFO),),
        not_exercised=deliberate({"method": "turn/start", "id": 1, "params": {}}),
    ),
]
