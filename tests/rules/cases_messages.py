"""Cases of the rules on single messages and responses."""

from harness.judge.verdict import Level
from tests.rules.case import Case, Found, opened, running, silent
from tests.rules.traces import (
    THREAD,
    Talk,
    agent_message,
    settings,
    thread_object,
    turn_object,
)

READ = "request thread/read id 1"

CASES = [
    Case(
        rule="frame.well-formed",
        good=silent(),
        witnesses=("connection c1",),
        bad=Talk()
        .says(b"Listening on port 80")
        .says(b"[]")
        .says(b'{"result": {}}')
        .says(b"\xff")
        .says({"method": "turn/started", "params": [1]})
        .says({"method": "item/fileChange/requestApproval", "id": "a", "params": {}})
        .asks("thread/read", threadId="thr_1")
        .answers("done"),
        found=tuple(Found("connection c1", (seq,)) for seq in (0, 1, 2, 3, 4, 5, 7)),
        not_exercised=Talk()
        .tells("x/y")
        .says({"method": "thread/closed"})
        .says({"method": "thread/closed", "params": None})
        .says({"error": {"code": -32700, "message": "?"}})
        .says(b'{"method": "cut o', note="cut"),
    ),
    Case(
        rule="response.known-id",
        good=Talk().asks("thread/read", threadId="thr_1").refuses().says({"id": None, "error": {}}),
        witnesses=(READ,),
        bad=Talk()
        .asks("thread/read", threadId="thr_1")
        .answers({}, to=7)
        .says({"id": "1", "result": {}}),
        found=(Found("answer id 7", (1,)), Found("answer id '1'", (2,))),
        not_exercised=Talk()
        .sends({"id": 5}, deliberate=True)
        .says({"id": 5, "result": {}})
        .refuses(to=6),
    ),
    Case(
        rule="response.once",
        good=silent(),
        witnesses=(READ,),
        bad=silent().refuses(),
        found=(Found(READ, (0, 1, 2)),),
        not_exercised=Talk()
        .sends({"method": "x", "id": 9}, deliberate=True)
        .refuses(to=9)
        .refuses(to=9),
    ),
    Case(
        rule="request.answered",
        good=silent(),
        witnesses=(READ,),
        bad=Talk().asks("thread/read", threadId="thr_1").asks("thread/list").answers({}),
        found=(Found(READ, (0,)),),
        not_exercised=Talk().sends({"method": "x", "id": 9}, deliberate=True),
    ),
    Case(
        rule="response.result-xor-error",
        good=silent().says({"id": 1, "result": None, "error": {"message": "no"}}),
        witnesses=(READ,),
        bad=Talk()
        .asks("thread/read", threadId="thr_1")
        .says({"id": 1, "result": {}, "error": {"message": "no"}}),
        found=(Found(READ, (1,), Level.INFO),),
        not_exercised=Talk().asks("thread/read", threadId="thr_1"),
    ),
    Case(
        rule="response.before-effects",
        good=running().interrupt().answers({}).end_turn(status="interrupted"),
        witnesses=("thread thr_1", "turn turn_1"),
        bad=Talk()
        .asks("thread/start")
        .tells("thread/started", thread=thread_object())
        .answers({"thread": thread_object(), **settings()})
        .ask_turn()
        .turn_started()
        .reply_turn()
        .interrupt()
        .turn_completed(status="interrupted")
        .answers({}),
        found=(
            Found("thread thr_1", (1, 2), Level.INFO),
            Found("turn turn_1", (4, 5), Level.INFO),
            Found("turn turn_1", (7, 8), Level.SHOULD),
        ),
        not_exercised=silent(),
    ),
    Case(
        rule="interrupt.reply-empty",
        good=running().interrupt().answers({}),
        witnesses=("request turn/interrupt id 3",),
        bad=running().interrupt().answers(None).interrupt().answers({"turnId": "turn_1"}),
        found=(
            Found("request turn/interrupt id 3", (9, 10)),
            Found("request turn/interrupt id 4", (11, 12), Level.INFO),
        ),
        not_exercised=running().interrupt().refuses(),
    ),
    Case(
        rule="shape.response",
        good=opened(),
        witnesses=("result of thread/start",),
        bad=Talk()
        .asks("turn/start", threadId=THREAD, input=[])
        .answers({"turn": turn_object(status="running")}),
        found=(Found("request turn/start id 1", (0, 1)),),
        not_exercised=silent().asks("model/list").answers({"models": 3}),
    ),
    Case(
        rule="shape.notification",
        good=Talk().status("idle").tells("unheard/of", x=1),
        witnesses=("notification thread/status/changed",),
        bad=Talk()
        .status("idle")
        .tells("thread/status/changed", threadId=THREAD, status="idle")
        .started({"type": "agentMessage", "id": "m-1"}),
        found=(
            Found("notification thread/status/changed", (1,)),
            Found("notification item/started", (2,)),
        ),
        not_exercised=silent().tells("unheard/of", x=1),
    ),
    Case(
        rule="method.known",
        good=Talk().status("idle"),
        witnesses=("method thread/status/changed",),
        bad=Talk()
        .tells("unheard/of", x=1)
        .tells("unheard/of", x=2)
        .says({"method": "ask/me", "id": 0, "params": {}}),
        found=(
            Found("method unheard/of", (0,), Level.INFO),
            Found("method ask/me", (2,), Level.INFO),
        ),
        not_exercised=silent(),
    ),
    Case(
        rule="harness.own-frame",
        good=silent(),
        witnesses=("own thread/read",),
        bad=Talk()
        .asks("thread/read", thread="thr_1")
        .sends(b"{")
        .asks("turn/start", threadId=THREAD, input="hello"),
        found=(
            Found("own thread/read", (0,)),
            Found("own message", (1,)),
            Found("own turn/start", (2,)),
        ),
        not_exercised=Talk()
        .sends(b"{", deliberate=True)
        .sends({"method": "thread/read", "id": 4, "params": {}}, deliberate=True)
        .sends({"method": "initialized"})
        .started(agent_message("m-1", ""))
        .asks("unheard/of", x=1),
    ),
]
