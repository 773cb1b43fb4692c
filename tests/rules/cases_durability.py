"""Cases of the rules on turns that the server's end cut off."""

from typing import Any

from harness.judge.verdict import Level
from harness.trace.marks import Closed, ServerEnded
from tests.rules.case import Case, Found, opened
from tests.rules.traces import (
    THREAD,
    TURN,
    Talk,
    agent_message,
    command,
    settings,
    thread_object,
    turn_object,
    user_message,
)

SUBJECT = "turn turn_1"
USER = user_message(f"{TURN}-user", "hello")
AGENT = agent_message("m-1", "Hello")


def ended(talk: Talk, *, killed: bool = False) -> Talk:
    """Add the server's end, and go on with a new connection: no message, two marks."""
    return talk.mark(Closed("c1")).mark(ServerEnded(killed=killed)).on("c2")


def cut() -> Talk:
    """Return a talk with a server that ends in a turn, after a message and in a command."""
    talk = opened().start_turn().message("m-1", "Hello").started(command("k-1"))
    return ended(talk)


def shown(*items: dict[str, Any], status: str = "interrupted", turn: str = TURN) -> dict[str, Any]:
    """Return the turn as it is stored."""
    return turn_object(turn, status, items=list(items))


def resume(talk: Talk, *turns: dict[str, Any], status: str = "idle") -> Talk:
    """Add thread/resume and its result."""
    state: dict[str, Any] = {"type": status}
    state |= {"activeFlags": []} if status == "active" else {}
    talk.asks("thread/resume", threadId=THREAD)
    thread = thread_object(preview="hello", status=state, turns=list(turns))
    return talk.answers({"thread": thread, **settings()})


def go_on(talk: Talk) -> Talk:
    """Add turn/start on the thread."""
    return talk.ask_turn(text="go on")


CASES = [
    Case(
        rule="durable.messages-kept",
        good=cut().read(shown(USER, AGENT), shown(turn="turn_0")),
        witnesses=(SUBJECT,),
        bad=cut().read(shown(USER)),
        found=(Found(SUBJECT, (11, 14), Level.SHOULD),),
        not_exercised=ended(opened().plain_turn()).read(),
    ),
    Case(
        rule="durable.turn-over",
        good=resume(cut(), shown(USER)),
        witnesses=(SUBJECT,),
        bad=cut().read(shown(USER, AGENT, status="inProgress")),
        found=(Found(SUBJECT, (6, 14), Level.SHOULD),),
        not_exercised=cut().mark(Closed("c2")).on("c3").read(),
    ),
    Case(
        rule="durable.items-over",
        good=cut().read(shown(USER, AGENT, command("k-1", "failed"))),
        witnesses=(SUBJECT,),
        bad=cut().read(shown(USER, AGENT, command("k-1"))),
        found=(Found(SUBJECT, (6, 14), Level.INFO),),
        not_exercised=cut().read(shown(USER, AGENT)),
    ),
    Case(
        rule="durable.goes-on",
        good=go_on(resume(cut(), shown(USER, AGENT))).reply_turn("turn_2"),
        witnesses=("thread thr_1",),
        bad=go_on(resume(cut(), shown(USER, AGENT))).refuses(),
        found=(Found("thread thr_1", (6, 14, 16), Level.SHOULD),),
        not_exercised=go_on(cut()).refuses(),
    ),
]
