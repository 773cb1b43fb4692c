"""Edge cases of accepted requests: no params, a sandbox, a listed value, a method."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.approval_talk import CWD
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import (
    THREAD,
    TURN,
    Talk,
    settings,
    stored_plain_turn,
    thread_object,
)

SHOULD = Level.SHOULD
SCHEMA = {"type": "object"}


def opened() -> Talk:
    return Talk().start_thread()


def hint(rule: str) -> frozenset[str]:
    return frozenset({rule})


def refused_turn(policy: dict[str, Any], words: str = "again", **more: Any) -> Talk:
    """A turn, then one with a sandbox of its own that is refused."""
    talk = opened().plain_turn()
    return talk.ask_turn(text=words, sandboxPolicy=policy, **more).refuses("sandboxPolicy: no")


def roots(*paths: str) -> dict[str, Any]:
    return {"type": "workspaceWrite", "writableRoots": list(paths), "networkAccess": False}


def after_an_archive(**more: Any) -> Talk:
    """A turn/start on a thread that was put away: refused, whatever its params."""
    talk = opened().plain_turn().asks("thread/archive", threadId=THREAD).answers({})
    talk.tells("thread/archived", threadId=THREAD)
    return talk.ask_turn(text="hello?", **more).refuses("the thread is archived")


def refused_start(talk: Talk, **params: Any) -> Talk:
    return talk.asks("thread/start", **params).refuses("no")


def listed(talk: Talk, **params: Any) -> Talk:
    return talk.asks("thread/list", **params).answers({"data": [], "nextCursor": None})


def forked(method: str, words: str) -> Talk:
    """A thread is forked, and another method of history refused."""
    talk = opened().plain_turn().asks("thread/fork", threadId=THREAD)
    fork = thread_object("thr_2", preview="hello", turns=[stored_plain_turn()])
    talk.answers({"thread": fork})
    talk.tells("thread/started", thread=thread_object("thr_2"))
    return talk.asks(method, threadId=THREAD).refuses(words)


NO_SUCH = "Method not found"


def declaring(talk: Talk, *capabilities: str) -> Talk:
    """A conversation with a server whose profile declares these capabilities."""
    talk.trace().header.capabilities = ["core", *capabilities]
    return talk


LEGAL: list[Legal] = [
    Legal(
        "thread.start-without-params",
        "ephemeral-is-no-param-of-the-text",
        lambda: refused_start(opened(), ephemeral=True).start_thread("thr_2"),
    ),
    Legal(
        "thread.start-without-params",
        "tools-of-the-client-are-no-param-of-the-text",
        lambda: refused_start(opened(), dynamicTools=[]).start_thread("thr_2"),
    ),
    Legal(
        "thread.start-without-params",
        "no-room-for-a-third-thread",
        lambda: refused_start(opened().start_thread("thr_2")),
        hints=hint("thread.start-without-params"),
    ),
    Legal(
        "turn.sandbox-policy-taken",
        "network-access-that-the-text-does-not-show",
        lambda: refused_turn({"type": "externalSandbox", "networkAccess": "restricted"}),
    ),
    Legal(
        "turn.sandbox-policy-taken",
        "access-that-the-text-does-not-show",
        lambda: refused_turn({"type": "readOnly", "access": {"type": "restricted"}}),
    ),
    Legal(
        "turn.sandbox-policy-taken",
        "roots-that-are-no-absolute-paths",
        lambda: refused_turn(roots("here", "/there")),
    ),
    Legal(
        "turn.sandbox-policy-taken",
        "input-of-another-kind",
        lambda: (
            opened()
            .plain_turn()
            .asks(
                "turn/start",
                threadId=THREAD,
                input=[{"type": "localImage", "path": "/no/such.png"}],
                sandboxPolicy={"type": "dangerFullAccess"},
            )
            .refuses("no such image")
        ),
    ),
    Legal(
        "turn.sandbox-policy-taken",
        "thread-that-was-archived",
        lambda: after_an_archive(sandboxPolicy={"type": "dangerFullAccess"}),
    ),
    Legal(
        "word.taken",
        "thread-that-was-archived",
        lambda: after_an_archive(approvalPolicy="never", effort="low"),
    ),
    Legal(
        "word.taken",
        "turn-that-is-running",
        lambda: (
            opened()
            .plain_turn()
            .start_turn("turn_2")
            .ask_turn(text="and now", approvalPolicy="never")
            .refuses("a turn is running")
            .end_turn("turn_2")
            .plain_turn("turn_3")
        ),
    ),
    Legal(
        "word.taken",
        "model-without-that-effort",
        lambda: (
            opened()
            .plain_turn()
            .ask_turn(text="think", effort="high")
            .refuses("mock-model has no effort high")
            .plain_turn("turn_2")
        ),
        hints=hint("word.taken"),
    ),
    Legal(
        "word.taken",
        "word-that-the-text-does-not-list",
        lambda: (
            opened()
            .plain_turn()
            .sends(
                {
                    "method": "turn/start",
                    "id": 3,
                    "params": {"threadId": THREAD, "input": [], "approvalPolicy": "always"},
                },
                deliberate=True,
            )
            .refuses("unknown policy", to=3)
        ),
    ),
    Legal(
        "method.offered",
        "no-such-method-where-nothing-of-its-kind-is-offered",
        lambda: opened().asks("thread/list").refuses(NO_SUCH),
    ),
    Legal(
        "method.offered",
        "the-same-code-for-another-reason",
        lambda: (
            opened()
            .asks("thread/read", threadId="thr_9", includeTurns=True)
            .says({"id": 2, "error": {"code": -32601, "message": "list_turns is not supported"}})
        ),
    ),
    Legal(
        "method.offered",
        "method-is-named-where-a-thread-is-unknown",
        lambda: (
            opened().asks("thread/read", threadId="thr_9").refuses("thread/read: unknown thread")
        ),
    ),
    Legal(
        "method.offered",
        "method-that-is-not-had-just-now",
        lambda: (
            opened()
            .asks("thread/read", threadId=THREAD, includeTurns=True)
            .refuses("method not supported for ephemeral threads")
        ),
    ),
    Legal(
        "method.offered",
        "one-of-three-is-missing",
        lambda: forked("thread/rollback", NO_SUCH),
        hints=hint("method.offered"),
    ),
    Legal(
        "method.offered",
        "declared-and-served-at-another-time",
        lambda: declaring(
            listed(opened().asks("thread/list", cursor="x").refuses("unknown method")),
            "thread-list",
        ),
    ),
]

ILLEGAL: list[Illegal] = [
    Illegal(
        "thread.start-without-params",
        "a-cwd-is-wanted",
        lambda: refused_start(opened()).start_thread("thr_2"),
    ),
    Illegal(
        "thread.start-without-params",
        "a-model-is-wanted",
        lambda: (
            refused_start(Talk().asks("initialize").answers({}))
            .asks("thread/start", model="mock-model")
            .answers({"thread": thread_object(), **settings()})
            .tells("thread/started", thread=thread_object())
        ),
    ),
    Illegal(
        "turn.sandbox-policy-taken",
        "full-access-refused",
        lambda: refused_turn({"type": "dangerFullAccess"}),
    ),
    Illegal(
        "turn.sandbox-policy-taken",
        "workspace-with-a-root-refused",
        lambda: refused_turn(roots("/srv/shared")),
    ),
    Illegal(
        "turn.sandbox-policy-taken",
        "external-sandbox-refused",
        lambda: refused_turn({"type": "externalSandbox", "networkAccess": "enabled"}),
    ),
    Illegal(
        "word.taken",
        "approval-policy-of-a-turn",
        lambda: (
            opened()
            .ask_turn(text="first", approvalPolicy="reject")
            .refuses("unknown policy")
            .plain_turn()
        ),
    ),
    Illegal(
        "word.taken",
        "approval-policy-of-a-thread",
        lambda: refused_start(opened(), cwd=CWD, approvalPolicy="on-failure").start_thread("thr_2"),
    ),
    Illegal(
        "word.taken",
        "one-policy-is-taken-and-another-is-not",
        lambda: (
            refused_start(Talk(), cwd=CWD, approvalPolicy="untrusted")
            .asks("thread/start", cwd=CWD, approvalPolicy="never")
            .answers({"thread": thread_object(), **settings()})
            .tells("thread/started", thread=thread_object())
        ),
    ),
    Illegal(
        "word.taken",
        "sort-key",
        lambda: listed(
            opened().asks("thread/list", limit=5, sortKey="updated_at").refuses(), limit=5
        ),
    ),
    Illegal(
        "word.taken",
        "summary",
        lambda: (
            opened().plain_turn().ask_turn(text="x", summary="verbose").refuses("no such summary")
        ),
        level=SHOULD,
    ),
    Illegal(
        "word.taken",
        "personality-of-a-resumed-thread",
        lambda: (
            opened()
            .asks("thread/resume", threadId=THREAD, personality="pragmatic")
            .refuses("no such personality")
            .asks("thread/resume", threadId=THREAD)
            .answers({"thread": thread_object(turns=[]), **settings()})
        ),
        level=SHOULD,
    ),
    Illegal(
        "method.offered",
        "every-server-can-read-a-thread",
        lambda: opened().asks("thread/read", threadId=THREAD).refuses(NO_SUCH),
    ),
    Illegal(
        "method.offered",
        "every-server-can-interrupt-in-a-form-of-its-own",
        lambda: (
            opened()
            .start_turn()
            .interrupt()
            .says({"id": 3, "fault": "unknown method turn/interrupt"})
            .end_turn()
        ),
    ),
    Illegal(
        "method.offered",
        "forks-and-does-not-know-resume",
        lambda: forked("thread/resume", "unknown variant `thread/resume`"),
        level=SHOULD,
    ),
    Illegal(
        "method.offered",
        "declares-history-and-does-not-know-rollback",
        lambda: declaring(forked("thread/rollback", NO_SUCH), "history"),
    ),
    Illegal(
        "method.offered",
        "declares-steering-and-does-not-know-it",
        lambda: declaring(
            opened()
            .asks("turn/steer", threadId=THREAD, input=[], expectedTurnId=TURN)
            .refuses("turn/steer: unknown"),
            "steering",
        ),
    ),
]
