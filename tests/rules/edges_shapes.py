"""Edge cases of the rules on the form of messages, their schemas, and responses."""

from typing import Any

from harness.judge.verdict import Level
from harness.trace.trace import End
from tests.rules.approval_talk import COMMAND, FILE, Approvals, command_item, file_item
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import (
    CREATED,
    THREAD,
    TURN,
    Talk,
    settings,
    stored_plain_turn,
    thread_object,
    turn_object,
)


def opened() -> Talk:
    return Talk().start_thread()


def steered_in_vain() -> Talk:
    said = [{"type": "text", "text": "and more"}]
    return opened().asks("turn/steer", threadId=THREAD, input=said, expectedTurnId="turn_9")


def replied(reply: dict[str, Any], *, sent: dict[str, Any] | None = None) -> Talk:
    """thread/start with other settings in its reply, or, on purpose, in what was asked for."""
    talk = Talk().sends({"method": "thread/start", "id": 1, "params": sent or {}}, deliberate=True)
    talk.answers({"thread": thread_object(), **settings(), **reply}, to=1)
    return talk.tells("thread/started", thread=thread_object())


def lean(**members: Any) -> dict[str, Any]:
    """A thread with its id and no more than these members."""
    return {"thread": {"id": THREAD, **members}}


def bare_question(**params: Any) -> Approvals:
    """A command that is asked about by the three ids and these members."""
    talk = Approvals().running("untrusted")
    talk.started(command_item())
    ids = {"threadId": THREAD, "turnId": TURN, "itemId": "call_1"}
    talk.says({"method": COMMAND, "id": 0, "params": {**ids, **params}})
    talk.decides("accept", to=0).resolved(0)
    talk.completed(command_item(status="completed", exitCode=0))
    talk.end_turn()
    return talk


def questioned(method: str, item: dict[str, Any], params: Any) -> Approvals:
    """A question about an item, with these params, where the recording ends."""
    talk = Approvals().running("untrusted")
    talk.started(item)
    talk.says({"method": method, "id": 0, "params": params})
    return talk


def turn_without_error() -> Talk:
    """A turn whose objects have no member `error`."""
    running = {"id": TURN, "items": [], "status": "inProgress"}
    talk = opened().ask_turn().answers({"turn": running}).status("active")
    talk.tells("turn/started", threadId=THREAD, turn=running).status("idle")
    return talk.tells("turn/completed", threadId=THREAD, turn={**running, "status": "completed"})


def resumed_with(policy: Any, sandbox: Any) -> Talk:
    """Policies of a turn/start that stand in the answer to thread/resume."""
    said = [{"type": "text", "text": "hello"}]
    params = {"threadId": THREAD, "input": said, "approvalPolicy": policy, "sandboxPolicy": sandbox}
    talk = opened().sends({"method": "turn/start", "id": 9, "params": params}, deliberate=True)
    talk.answers({"turn": turn_object()}, to=9).status("active").turn_started().end_turn()
    talk.asks("thread/resume", threadId=THREAD)
    shown = {**settings(), "approvalPolicy": policy, "sandbox": sandbox}
    thread = thread_object(preview="hello", turns=[turn_object(status="completed")])
    return talk.answers({"thread": thread, **shown})


def repeats_the_input(part: dict[str, Any]) -> Talk:
    """A part of the input that the text does not have, taken and shown as it was sent."""
    said = [{"type": "text", "text": "hello"}, part]
    params = {"threadId": THREAD, "input": said}
    talk = opened().sends({"method": "turn/start", "id": 2, "params": params}, deliberate=True)
    talk.answers({"turn": turn_object()}, to=2).status("active").turn_started()
    talk.item({"type": "userMessage", "id": "u", "content": said})
    return talk.end_turn()


def failing_work(method: str) -> Talk:
    """Work that is asked for and fails, under an id that was never announced."""
    talk = opened().plain_turn().asks(method, threadId=THREAD).answers({})
    return talk.failing(will_retry=False, turn="work_1")


UNKNOWN = {"granular": {"rules": True}}

# A whole number that no double can hold, as a client may send to try the server.
HUGE = 10**30


def asked_with_a_huge_id() -> Talk:
    request = {"method": "thread/loaded/list", "id": HUGE, "params": {}}
    return opened().sends(request, deliberate=True)


def two_questions_with_ids_of_one_double() -> Talk:
    """The times in nanoseconds that number the requests of this server differ by one."""
    talk = opened().plain_turn()
    for number in (1795415541095879802, 1795415541095879803):
        talk.says({"method": "client/beep", "id": number, "params": {}})
        talk.sends({"id": number, "result": {}})
    return talk


LEGAL: list[Legal] = [
    Legal(
        "response.known-id",
        "huge-id-comes-back-as-a-double",
        lambda: asked_with_a_huge_id().says({"id": float(HUGE), "result": {"data": [THREAD]}}),
    ),
    Legal("response.known-id", "questions-of-one-double", two_questions_with_ids_of_one_double),
    Legal(
        "frame.well-formed",
        "failure-told-in-a-member-of-its-own",
        lambda: steered_in_vain().says({"id": 2, "failure": {"reason": "no active turn"}}),
    ),
    Legal(
        "frame.well-formed",
        "failure-told-by-flat-members",
        lambda: steered_in_vain().says({"id": 2, "ok": False, "code": 17, "jsonrpc": "2.0"}),
    ),
    Legal(
        "frame.well-formed",
        "failure-beside-a-null-result",
        lambda: steered_in_vain().says({"id": 2, "result": None, "failure": "no active turn"}),
    ),
    Legal(
        "request.answered",
        "handshake-that-the-text-does-not-have-is-ignored",
        lambda: Talk().asks("initialize", clientInfo={}).start_thread().plain_turn(),
        hints=frozenset({"request.answered"}),
    ),
    Legal(
        "request.answered",
        "unheard-of-method-is-ignored",
        lambda: opened().plain_turn().asks("review/start", threadId=THREAD),
        hints=frozenset({"request.answered"}),
    ),
    Legal(
        "request.answered",
        "method-under-development-is-ignored",
        lambda: opened().asks("skills/remote/list"),
        hints=frozenset({"request.answered"}),
    ),
    Legal(
        "request.answered",
        "failure-in-a-form-of-its-own-is-an-answer",
        lambda: opened().asks("thread/archive", threadId="thr_9").says({"id": 2, "fault": "none"}),
    ),
    Legal(
        "shape.server-request",
        "question-without-command-and-cwd",
        lambda: bare_question(reason="it reaches out to the network"),
        hints=frozenset({"shape.server-request"}),
    ),
    Legal(
        "shape.server-request",
        "question-with-null-for-the-command",
        lambda: bare_question(command=None, cwd="/home/user/project"),
        hints=frozenset({"shape.server-request"}),
    ),
    Legal(
        "shape.response",
        "sandbox-that-reads-only-without-access",
        lambda: replied({"sandbox": {"type": "readOnly"}}),
        hints=frozenset({"shape.response"}),
    ),
    Legal(
        "shape.response",
        "sandbox-of-a-workspace-without-its-details",
        lambda: replied({"sandbox": {"type": "workspaceWrite", "writableRoots": []}}),
        hints=frozenset({"shape.response"}),
    ),
    Legal(
        "shape.response",
        "thread-read-with-id-and-status-only",
        lambda: (
            opened()
            .plain_turn()
            .asks("thread/read", threadId=THREAD)
            .answers(lean(status={"type": "notLoaded"}))
        ),
        hints=frozenset({"shape.response"}),
    ),
    Legal(
        "shape.response",
        "thread-unarchived-is-named-by-its-id",
        lambda: (
            opened()
            .plain_turn()
            .asks("thread/archive", threadId=THREAD)
            .answers({})
            .tells("thread/archived", threadId=THREAD)
            .asks("thread/unarchive", threadId=THREAD)
            .answers(lean())
            .tells("thread/unarchived", threadId=THREAD)
        ),
        hints=frozenset({"shape.response"}),
    ),
    Legal(
        "shape.response",
        "rollback-shows-the-turns-that-are-left",
        lambda: (
            opened()
            .plain_turn()
            .plain_turn("turn_2")
            .asks("thread/rollback", threadId=THREAD, numTurns=1)
            .answers(lean(createdAt=CREATED, turns=[stored_plain_turn()]))
        ),
        hints=frozenset({"shape.response"}),
    ),
    Legal(
        "error.names-turn",
        "compaction-that-is-no-turn-fails",
        lambda: failing_work("thread/compact/start"),
        hints=frozenset({"error.names-turn"}),
    ),
    Legal(
        "error.names-turn",
        "work-that-the-text-does-not-have-fails",
        lambda: failing_work("review/start"),
        hints=frozenset({"error.names-turn"}),
    ),
    Legal(
        "shape.notification",
        "turns-without-an-error-have-no-such-member",
        turn_without_error,
        hints=frozenset({"shape.notification", "shape.response"}),
    ),
    Legal(
        "shape.notification",
        "params-of-a-payload-that-is-not-shown-are-null",
        lambda: (
            opened()
            .plain_turn()
            .says({"method": "thread/tokenUsage/updated", "params": None})
            .says({"method": "thread/name/updated"})
        ),
    ),
    Legal(
        "shape.response",
        "policies-of-the-client-are-repeated-as-it-wrote-them",
        lambda: resumed_with(UNKNOWN, {"type": "readOnly", "access": "all"}),
    ),
    Legal(
        "shape.response",
        "policy-of-the-start-is-repeated-as-the-client-wrote-it",
        lambda: replied({"approvalPolicy": UNKNOWN}, sent={"approvalPolicy": UNKNOWN}),
    ),
    Legal(
        "shape.notification",
        "input-that-the-text-does-not-have-is-repeated",
        lambda: repeats_the_input({"type": "audio", "url": "file:///a.wav"}),
    ),
]

ILLEGAL: list[Illegal] = [
    Illegal(
        "frame.well-formed",
        "answer-that-says-nothing-at-all",
        lambda: opened().asks("thread/archive", threadId=THREAD).says({"id": 2}),
        also=frozenset({"request.answered"}),
    ),
    Illegal(
        "frame.well-formed",
        "null-for-a-result",
        lambda: (
            opened()
            .asks("thread/archive", threadId=THREAD)
            .answers(None)
            .tells("thread/archived", threadId=THREAD)
        ),
        also=frozenset({"archive.reply-empty"}),
    ),
    Illegal(
        "request.answered",
        "listing-is-ignored",
        lambda: opened().asks("thread/list"),
    ),
    Illegal(
        "request.answered",
        "read-is-ignored-and-later-requests-are-not",
        lambda: (
            opened()
            .asks("thread/read", threadId=THREAD)
            .asks("thread/loaded/list")
            .answers({"data": [THREAD], "nextCursor": None})
        ),
    ),
    Illegal(
        "response.known-id",
        "huge-id-comes-back-with-its-digits-cut",
        lambda: asked_with_a_huge_id().says({"id": 10**29, "result": {"data": [THREAD]}}),
    ),
    Illegal(
        "response.known-id",
        "failure-in-a-form-of-its-own-to-nothing",
        lambda: opened().says({"id": 77, "failure": "what"}),
    ),
    Illegal(
        "response.known-id",
        "failure-with-the-id-as-a-string",
        lambda: steered_in_vain().refuses().says({"id": "2", "failure": "no active turn"}),
    ),
    Illegal(
        "error.names-turn",
        "turn-that-never-was",
        lambda: opened().plain_turn().failing(will_retry=True, turn="turn_9"),
    ),
    Illegal(
        "error.names-turn",
        "turn-of-another-thread",
        lambda: (
            opened().start_thread("thr_2").start_turn().failing(will_retry=True, thread="thr_2")
        ).end_turn(),
    ),
    Illegal(
        "shape.notification",
        "null-for-the-params-of-a-status",
        lambda: opened().plain_turn().says({"method": "thread/status/changed", "params": None}),
    ),
    Illegal(
        "shape.notification",
        "null-for-the-params-of-an-archived-thread",
        lambda: (
            opened()
            .plain_turn()
            .asks("thread/archive", threadId=THREAD)
            .answers({})
            .says({"method": "thread/archived", "params": None})
        ),
    ),
    Illegal(
        "shape.notification",
        "null-for-the-params-of-an-error",
        lambda: opened().start_turn().says({"method": "error", "params": None}).end_turn(),
    ),
    Illegal(
        "shape.server-request",
        "null-for-the-params-of-a-question",
        lambda: questioned(COMMAND, command_item(), None),
        end=End.CLOSED,
    ),
    Illegal(
        "shape.server-request",
        "question-about-a-file-that-names-no-item",
        lambda: questioned(FILE, file_item(), {"threadId": THREAD, "turnId": TURN}),
        end=End.CLOSED,
    ),
    Illegal(
        "shape.server-request",
        "command-of-a-question-as-one-string",
        lambda: bare_question(command="ls", cwd="/home/user/project"),
    ),
    Illegal(
        "shape.server-request",
        "question-without-cwd-and-command",
        bare_question,
        level=Level.SHOULD,
    ),
    Illegal(
        "shape.response",
        "thread-read-with-a-wrong-type-beside-what-is-missing",
        lambda: (
            opened()
            .asks("thread/read", threadId=THREAD)
            .answers(lean(status={"type": "idle"}, createdAt="today"))
        ),
    ),
    Illegal(
        "shape.response",
        "thread-read-without-an-id",
        lambda: (
            opened()
            .asks("thread/read", threadId=THREAD)
            .answers({"thread": {"status": {"type": "idle"}}})
        ),
    ),
    Illegal(
        "shape.response",
        "policy-that-nobody-sent",
        lambda: replied({"approvalPolicy": UNKNOWN}, sent={"approvalPolicy": {"granular": {}}}),
    ),
    Illegal(
        "shape.response",
        "network-access-of-a-workspace-as-a-word",
        lambda: replied(
            {"sandbox": {"type": "workspaceWrite", "writableRoots": [], "networkAccess": "enabled"}}
        ),
    ),
]
