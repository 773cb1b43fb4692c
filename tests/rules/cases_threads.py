"""Cases of the rules on threads, their status, and thread/read."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.case import Case, Found, opened, running, silent
from tests.rules.traces import (
    THREAD,
    TURN,
    Talk,
    agent_message,
    settings,
    stored_plain_turn,
    thread_object,
    turn_object,
    user_message,
)

SUBJECT = "thread thr_1"


def _reply(**thread: Any) -> Talk:
    return Talk().asks("thread/start").answers({"thread": thread_object(**thread), **settings()})


def _started(given: dict[str, Any] | None = None, **asked: Any) -> Talk:
    """thread/start with these params, and a reply with some settings of its own."""
    result = {"thread": thread_object(), **settings(), **(given or {})}
    return Talk().asks("thread/start", **asked).answers(result)


CASES = [
    Case(
        rule="thread.started-announced",
        good=Talk()
        .asks("thread/start")
        .tells("thread/started", thread=thread_object())
        .answers({"thread": thread_object(), **settings()}),
        witnesses=(SUBJECT,),
        bad=opened()
        .tells("thread/started", thread=thread_object())
        .asks("thread/start")
        .answers({"thread": thread_object("thr_2"), **settings()}),
        found=(Found(SUBJECT, (2, 3)), Found("thread thr_2", (5,))),
        not_exercised=Talk().tells("thread/started", thread=thread_object()),
    ),
    Case(
        rule="thread.starts-idle",
        good=opened(),
        witnesses=(SUBJECT,),
        bad=_reply(status={"type": "notLoaded"}),
        found=(Found(SUBJECT, (1,)),),
        not_exercised=_reply(status="idle").asks("thread/start").refuses(),
    ),
    Case(
        rule="thread.ids-unique",
        good=opened().start_thread("thr_2"),
        witnesses=("thread thr_2",),
        bad=opened().start_thread("thr_2").start_thread(),
        found=(Found(SUBJECT, (1, 7)),),
        not_exercised=opened(),
    ),
    Case(
        rule="thread.timestamps-seconds",
        good=_reply(createdAt=1_000_000_000, updatedAt=1_700_000_000.5),
        witnesses=(SUBJECT,),
        bad=_reply(createdAt=0, updatedAt=1_700_000_000_000),
        found=(Found(SUBJECT, (1,), Level.SHOULD), Found(SUBJECT, (1,))),
        not_exercised=silent().tells("thread/closed", threadId=THREAD),
    ),
    Case(
        rule="thread.updated-not-before-created",
        good=_reply(createdAt=1_700_000_000.5, updatedAt=1_700_000_000),
        witnesses=(SUBJECT,),
        bad=_reply(createdAt=1_700_000_000, updatedAt=1_699_999_999),
        found=(Found(SUBJECT, (1,), Level.SHOULD),),
        not_exercised=_reply(updatedAt="yesterday"),
    ),
    Case(
        rule="thread.settings-echo",
        good=_started(
            model="mock-model",
            modelProvider="mock",
            cwd="/home/user/project/",
            approvalPolicy="never",
            sandbox="danger-full-access",
        ),
        witnesses=(SUBJECT,),
        bad=_started({"cwd": "/private/srv"}, model="other", cwd="/srv", sandbox="readOnly"),
        found=(
            Found(SUBJECT, (0, 1), Level.SHOULD),
            Found(SUBJECT, (0, 1), Level.SHOULD),
            Found(SUBJECT, (1,), Level.SHOULD),
        ),
        not_exercised=_started(cwd="here", personality="none", sandbox="own")
        .asks("thread/start")
        .refuses(),
    ),
    Case(
        rule="thread.preview-first-message",
        good=opened()
        .start_turn(text="make  a very long file")
        .end_turn()
        .asks("thread/list")
        .answers({"data": [thread_object(preview="make a very…")], "nextCursor": None}),
        witnesses=(SUBJECT,),
        bad=opened()
        .plain_turn()
        .plain_turn("turn_2")
        .asks("thread/read", threadId=THREAD)
        .answers({"thread": thread_object(preview="other")})
        .asks("thread/read", threadId=THREAD)
        .answers({"thread": thread_object()}),
        found=(Found(SUBJECT, (3, 28), Level.SHOULD), Found(SUBJECT, (3, 30), Level.SHOULD)),
        # A turn that goes on; a thread that was rolled back; a thread of others.
        not_exercised=running()
        .read(include=False)
        .end_turn()
        .asks("thread/rollback", threadId=THREAD)
        .answers({"thread": thread_object()})
        .read(include=False)
        .read(thread="thr_2"),
    ),
    Case(
        rule="thread.id-shape",
        good=opened(),
        witnesses=("thread ids",),
        bad=Talk().start_thread("0199-aa").start_thread("0199-ab"),
        found=(Found("thread ids", (1,), Level.SHOULD),),
        not_exercised=Talk().tells("thread/started", thread=thread_object("0199-aa")),
    ),
    Case(
        rule="status.active-while-turn",
        good=running().end_turn(),
        witnesses=(SUBJECT,),
        bad=opened()
        .ask_turn()
        .reply_turn()
        .turn_started()
        .turn_completed()
        .start_turn("turn_2")
        .turn_completed("turn_2"),
        found=(Found(SUBJECT, (6,), Level.SHOULD), Found(SUBJECT, (13, 9), Level.SHOULD)),
        not_exercised=Talk().turn_started().turn_completed(),
    ),
    Case(
        rule="status.changed-is-change",
        good=opened().status("active").status("idle"),
        witnesses=(SUBJECT,),
        bad=opened().status("active").status("active"),
        found=(Found(SUBJECT, (3, 4), Level.SHOULD),),
        not_exercised=opened()
        .status("idle")
        .asks("thread/unsubscribe", threadId=THREAD)
        .answers({"status": "unsubscribed"})
        .asks("thread/resume", threadId=THREAD)
        .status("idle"),
    ),
    Case(
        rule="status.read-matches-turns",
        good=running().read_status("active").end_turn().read_status("idle"),
        witnesses=(SUBJECT,),
        bad=running().read_status("idle").message("m-1", "a").end_turn().read_status("active"),
        found=(Found(SUBJECT, (6, 9, 10, 11), Level.SHOULD), Found(SUBJECT, (14, 16, 17))),
        # The turn may have ended, or begun, between the request and its answer.
        not_exercised=running()
        .read_status("idle")
        .end_turn()
        .ask_turn()
        .read_status("active")
        .answers({"turn": turn_object("turn_2")}, to=4)
        .turn_started("turn_2")
        .read_status("notLoaded")
        .read_status("systemError"),
    ),
    Case(
        rule="status.change-notified",
        good=running().read_status("active"),
        witnesses=(SUBJECT,),
        bad=opened().ask_turn().reply_turn().turn_started().read_status("active"),
        found=(Found(SUBJECT, (1, 7)),),
        not_exercised=opened()
        .read_status("idle")
        .read_status("notLoaded")
        .asks("thread/resume", threadId=THREAD)
        .answers({"thread": thread_object()})
        .read_status("active")
        .asks("thread/unsubscribe", threadId=THREAD)
        .answers({"status": "unsubscribed"})
        .read_status("active")
        .read_status("idle"),
    ),
    Case(
        rule="read.thread-id",
        good=opened().read(include=False),
        witnesses=(SUBJECT,),
        bad=opened()
        .asks("thread/read", threadId=THREAD)
        .answers({"thread": thread_object("thr_2")}),
        found=(Found(SUBJECT, (3, 4)),),
        not_exercised=silent(),
    ),
    Case(
        rule="read.includes-turns",
        good=opened().plain_turn().read(stored_plain_turn()),
        witnesses=(SUBJECT,),
        # plain_turn: 3 to 8, message 9 to 12, status 13, turn/completed 14.
        bad=opened().plain_turn().read(),
        found=(Found(SUBJECT, (14, 15, 16)),),
        # The turn ends between the read's sending and its answer: nothing can be said.
        not_exercised=running()
        .asks("thread/read", threadId=THREAD, includeTurns=True)
        .end_turn()
        .answers({"thread": thread_object()}),
    ),
    Case(
        rule="read.omits-turns",
        good=opened().plain_turn().read(include=False),
        witnesses=(SUBJECT,),
        bad=opened()
        .plain_turn()
        .asks("thread/read", threadId=THREAD, includeTurns=False)
        .answers({"thread": thread_object(turns=[turn_object(status="completed")])}),
        found=(Found(SUBJECT, (15, 16)),),
        not_exercised=opened().read(include=False),
    ),
    Case(
        rule="read.stored-equals-live",
        good=opened().plain_turn().read(stored_plain_turn()),
        witnesses=("turn turn_1",),
        bad=opened()
        .plain_turn()
        .read(
            turn_object(
                status="completed",
                items=[user_message("item-1", "hello"), agent_message("item-2", "Hell")],
            )
        )
        .read(turn_object("turn_7", "completed"))
        .read(turn_object(TURN, "interrupted")),
        found=(
            Found("turn turn_1", (14, 16), Level.SHOULD),
            Found("turn turn_1", (14, 18), Level.SHOULD),
            Found("turn turn_1", (14, 20), Level.SHOULD),
        ),
        not_exercised=opened().plain_turn().read(include=False),
    ),
    Case(
        rule="thread.start-without-params",
        good=opened(),
        witnesses=("request thread/start id 1",),
        bad=opened()
        .asks("thread/start")
        .refuses()
        .start_thread("thr_2")
        .asks("thread/start")
        .refuses(),
        found=(
            Found("request thread/start id 2", (3, 4)),
            Found("request thread/start id 4", (8, 9), Level.SHOULD),
        ),
        # Nothing was served before; a wrong param; another request is being served.
        not_exercised=Talk()
        .asks("thread/start")
        .refuses()
        .asks("initialize")
        .answers({})
        .asks("thread/start", model="none")
        .refuses()
        .asks("thread/read", threadId="thr_9")
        .asks("thread/start")
        .refuses()
        .refuses(to=4),
    ),
    Case(
        rule="thread.cwd-captured",
        good=opened().read(include=False),
        witnesses=("thread thr_1",),
        bad=opened()
        .asks("thread/read", threadId=THREAD)
        .answers({"thread": thread_object(cwd="/somewhere/else")}),
        found=(Found("thread thr_1", (1, 4)),),
        # A thread of others, and one that a turn was to move.
        not_exercised=Talk()
        .read(thread="thr_9")
        .asks("thread/start")
        .answers({"thread": thread_object(), **settings()})
        .ask_turn(cwd="/somewhere/else")
        .reply_turn()
        .asks("thread/read", threadId=THREAD)
        .answers({"thread": thread_object(cwd="/somewhere/else")}),
    ),
    Case(
        rule="status.known-move",
        good=opened().status("active").status("systemError").status("active").status("idle"),
        witnesses=("thread thr_1",),
        bad=opened().status("notLoaded").status("active"),
        found=(Found("move from notLoaded to active", (3, 4), Level.INFO),),
        # The first of a thread of others, flags alone, a status that does not exist, a reload.
        not_exercised=Talk()
        .status("active", "thr_9")
        .tells(
            "thread/status/changed",
            threadId="thr_9",
            status={"type": "active", "activeFlags": ["waiting"]},
        )
        .status("busy", "thr_9")
        .asks("thread/resume", threadId="thr_9")
        .refuses()
        .status("idle", "thr_9"),
    ),
]
