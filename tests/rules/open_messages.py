"""Other choices at open points of messages, errors and limits."""

from tests.rules.open_point import Otherwise, Untried, Why
from tests.rules.traces import (
    THREAD,
    Talk,
    agent_message,
    settings,
    thread_object,
    turn_object,
    user_message,
)


def _odd_frames() -> Talk:
    talk = Talk().asks("thread/start", cwd="/home/user/project")
    result = {"thread": thread_object(mood="fine"), **settings(), "build": {"n": 1}}
    talk.says({"id": 1, "result": result, "trace": "abc"})
    talk.says({"method": "thread/started", "params": {"thread": thread_object(), "x": []}, "v": 2})
    talk.ask_turn().answers({"turn": turn_object(colour="blue"), "queue": 0})
    talk.status("active")
    talk.tells("turn/started", threadId=THREAD, turn=turn_object(), at=5)
    talk.item({**user_message("u", "hello"), "origin": {"deep": [1]}})
    return talk.message("m", "Hello").end_turn()


def _versioned(member: dict[str, str]) -> Talk:
    talk = Talk().asks("thread/read", threadId="thr_9")
    return talk.says({**member, "id": 1, "error": {"code": -1, "message": "no such thread"}})


def _string_ids() -> Talk:
    talk = Talk()
    start = {"method": "thread/start", "id": "a-1", "params": {"cwd": "/home/user/project"}}
    talk.sends(start, deliberate=True)
    error = {"code": -32600, "message": "id must be a number"}
    return talk.says({"id": None, "error": error}).start_thread().plain_turn()


def _id_used_again(*, answered_twice: bool) -> Talk:
    talk = Talk().start_thread()
    again = {"method": "thread/loaded/list", "id": 7, "params": {}}
    talk.sends(again, deliberate=True).sends(again, deliberate=True)
    listed = {"id": 7, "result": {"data": [THREAD], "nextCursor": None}}
    talk.says(listed)
    return talk.says(listed) if answered_twice else talk


def _out_of_order() -> Talk:
    talk = Talk().start_thread()
    talk.asks("thread/read", threadId=THREAD).asks("thread/loaded/list")
    talk.answers({"data": [THREAD], "nextCursor": None}, to=3)
    return talk.answers({"thread": thread_object()}, to=2)


def _told_to_both() -> Talk:
    """A second client that opened nothing hears all of a turn; the first hears it too."""
    talk = Talk().start_thread().on("c2").asks("thread/loaded/list")
    talk.answers({"data": [THREAD], "nextCursor": None}).on("c1").ask_turn().reply_turn()
    for client in ("c1", "c2"):
        talk.on(client).status("active").turn_started().item(user_message("u", "hello"))
        talk.message("m", "a").end_turn()
    return talk


def _started_told_to_one() -> Talk:
    """The second client is told nothing of a thread that the first one started."""
    talk = Talk().on("c2").asks("thread/loaded/list").answers({"data": [], "nextCursor": None})
    return talk.on("c1").start_thread().plain_turn()


def _refused(method: str, error: object, **params: object) -> Talk:
    talk = Talk().start_thread().asks(method, **params)
    return talk.says({"id": 2, "error": error})


def _unlisted() -> Talk:
    talk = Talk().start_thread()
    talk.says({"method": "mood/changed", "params": {"mood": "good"}})
    talk.says({"method": "client/beep", "id": 0, "params": {"times": 2}})
    talk.sends({"id": 0, "result": {}})
    talk.says({"method": "thread/looked-at", "params": {"threadId": THREAD, "by": None}})
    return talk.plain_turn()


def _late_answer() -> Talk:
    talk = Talk().start_thread().ask_turn().status("active").turn_started()
    talk.item(user_message("u", "hello")).reply_turn().message("m", "Hello").end_turn()
    talk.asks("thread/archive", threadId=THREAD).tells("thread/archived", threadId=THREAD)
    return talk.answers({})


def _malformed(*answers: object) -> Talk:
    talk = Talk().start_thread().sends(b"{nonsense", deliberate=True)
    for answer in answers:
        talk.says(answer)
    return talk.plain_turn()


def _many_retries() -> Talk:
    talk = Talk().start_thread().start_turn()
    for _ in range(12):
        talk.failing(will_retry=True)
    return talk.message("m", "at last").end_turn()


NO_PARAMS = {"method": "thread/loaded/list", "id": 5}

OTHERWISE = [
    Otherwise("rpc.extra-members", "adds members everywhere", _odd_frames),
    Otherwise(
        "rpc.absent-params",
        "refuses a request without params",
        lambda: (
            Talk()
            .start_thread()
            .sends(NO_PARAMS, deliberate=True)
            .says({"id": 5, "error": {"code": -32602, "message": "params are missing"}})
        ),
    ),
    Otherwise("rpc.id-forms", "refuses an id that is a string", _string_ids),
    Otherwise(
        "rpc.duplicate-id", "answers both requests", lambda: _id_used_again(answered_twice=True)
    ),
    Otherwise("rpc.duplicate-id", "answers one", lambda: _id_used_again(answered_twice=False)),
    Otherwise("rpc.concurrent-requests", "answers the second first", _out_of_order),
    Otherwise("rpc.jsonrpc-member", "sends jsonrpc", lambda: _versioned({"jsonrpc": "2.0"})),
    Otherwise("rpc.jsonrpc-member", "sends an old version", lambda: _versioned({"jsonrpc": "1.0"})),
    Otherwise(
        "rpc.handshake",
        "refuses initialize",
        lambda: Talk().asks("initialize").refuses("unknown method").start_thread().plain_turn(),
    ),
    Otherwise(
        "rpc.handshake",
        "refuses all else before it",
        lambda: (
            Talk()
            .asks("thread/loaded/list")
            .refuses("not initialized")
            .asks("initialize", clientInfo={"name": "x", "version": "1"})
            .answers({"hello": [1, 2]})
            .start_thread()
            .plain_turn()
        ),
    ),
    Otherwise("rpc.several-clients", "tells every client everything", _told_to_both),
    Otherwise(
        "rpc.several-clients", "tells a new thread to its client alone", _started_told_to_one
    ),
    Otherwise(
        "rpc.unknown-method",
        "answers with a code of its own",
        lambda: _refused("mood/read", {"code": 404, "message": "what?"}),
    ),
    Otherwise(
        "rpc.invalid-params",
        "answers with a code of its own",
        lambda: (
            Talk()
            .start_thread()
            .sends({"method": "thread/read", "id": 5, "params": {}}, deliberate=True)
            .says({"id": 5, "error": {"code": 1, "message": "threadId?"}})
        ),
    ),
    Otherwise(
        "rpc.unknown-params",
        "refuses a param that is not listed",
        lambda: _refused(
            "thread/read", {"code": -32602, "message": "unknown: mood"}, threadId=THREAD, mood=1
        ),
    ),
    Otherwise(
        "rpc.unlisted-methods", "has a server request and notifications of its own", _unlisted
    ),
    Otherwise("rpc.response-order", "answers after what the request causes", _late_answer),
    Otherwise(
        "rpc.error-response",
        "answers with a text as its error",
        lambda: _refused("thread/read", "no such thread", threadId="thr_9"),
    ),
    Otherwise(
        "rpc.error-response",
        "has a code that is a word, and no message",
        lambda: _refused("thread/read", {"code": "NOT_FOUND"}, threadId="thr_9"),
    ),
    Otherwise("rpc.malformed-lines", "ignores the line", _malformed),
    Otherwise(
        "rpc.malformed-lines",
        "tells of it by a notification",
        lambda: _malformed({"method": "parse/failed", "params": {"line": 3}}),
    ),
    Otherwise("errors.retry-limits", "tries a call again twelve times", _many_retries),
    Otherwise(
        "errors.retry-limits",
        "does not try again",
        lambda: (
            Talk()
            .start_thread()
            .start_turn()
            .end_turn(status="failed", error={"message": "the model is overloaded"})
        ),
    ),
    Otherwise(
        "errors.final-notified",
        "sends no error notification before a failed turn",
        lambda: (
            Talk()
            .start_thread()
            .start_turn()
            .end_turn(status="failed", error={"message": "no", "agentErrorInfo": "BadRequest"})
        ),
    ),
    Otherwise(
        "errors.turn-goes-on",
        "makes the turn go on without the try that it had announced",
        lambda: (
            Talk()
            .start_thread()
            .start_turn()
            .failing(will_retry=True)
            .item(agent_message("m", "the model could not be reached"))
            .end_turn()
        ),
    ),
    Otherwise(
        "limits.numbers",
        "refuses a text that is too long for it",
        lambda: (
            Talk()
            .start_thread()
            .ask_turn(text="x" * 5000)
            .refuses("input is limited to 4096 characters")
            .plain_turn()
        ),
    ),
    Otherwise(
        "limits.numbers",
        "compacts in each turn",
        lambda: (
            Talk()
            .start_thread()
            .start_turn()
            .item({"type": "contextCompaction", "id": "c"})
            .message("m", "a")
            .end_turn()
            .start_turn("turn_2")
            .item({"type": "contextCompaction", "id": "c2"}, "turn_2")
            .message("m2", "b", turn="turn_2")
            .end_turn("turn_2")
        ),
    ),
]

UNTRIED = [
    Untried(
        "rpc.transport",
        Why.NOT_ON_THE_WIRE,
        "a trace has messages, whatever carried them; of another transport the harness has no say",
    ),
    Untried(
        "rpc.connection-end",
        Why.NOT_ON_THE_WIRE,
        "of a connection that the client ended nothing is owed, so nothing of it is judged",
    ),
    Untried(
        "rpc.other-methods",
        Why.NOTHING_LEFT,
        "a method that the text does not name is judged by its form alone: rpc.unlisted-methods",
    ),
    Untried(
        "rpc.authentication",
        Why.NOT_ON_THE_WIRE,
        "proof of who connects is given before the first message of a conversation",
    ),
    Untried(
        "limits.shutdown",
        Why.NOT_ON_THE_WIRE,
        "how a process ends is told by the findings on hygiene, which are warnings",
    ),
    Untried(
        "versioning.identifiers",
        Why.NOT_ON_THE_WIRE,
        "it is the book that is identified, and no message has a version",
    ),
]
