"""Cases of the rules on the events of `agent exec`.

A process begins with its prompt: seq 0, thread.started is seq 1, turn.started seq 2.
"""

import json
from typing import Any

from harness.judge.verdict import Level
from harness.trace.marks import SessionItem, SessionReport
from tests.rules.case import Case, Found
from tests.rules.streams import StreamTalk, command, kept, message

TURN = "turn 1 of p1"
SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


def opened(**more: Any) -> StreamTalk:
    return StreamTalk().process(**more).opens()


def plain() -> StreamTalk:
    return StreamTalk().turn()


def silent() -> StreamTalk:
    """A process that wrote nothing."""
    return StreamTalk().process().exits(1)


def resumed(thread: str = "thr_1", *texts: str) -> StreamTalk:
    talk = StreamTalk().process("hello").opens().calls("hello").answers("Hi.").done()
    talk.process("and now?", thread="thr_1", earlier=("hello",)).opens(thread)
    return talk.calls(*texts).answers("Still here.").completed(message("Still here.")).done()


def asked(schema: object, said: str, told: str) -> StreamTalk:
    talk = opened(schema=json.dumps(schema)).calls("hello").answers(said)
    return talk.completed(message(told)).done()


def compared(*told: SessionItem, status: str = "completed") -> StreamTalk:
    talk = StreamTalk().mark(SessionReport("u1", status, told)).process().opens()
    talk.calls("hello").answers("Hello.").completed(command(exit_code=0))
    return talk.completed(message("Hello.")).done()


CASES = [
    Case(
        rule="exec.thread-first",
        good=plain(),
        witnesses=(TURN,),
        bad=StreamTalk()
        .process()
        .says("turn.started")
        .says("thread.started", thread_id="thr_1")
        .exits()
        .process()
        .opens()
        .says("thread.started", thread_id="thr_1")
        .done(),
        found=(Found(TURN, (1,)), Found("turn 1 of p2", (5, 6))),
        # A process that goes on with a thread need not name it again.
        not_exercised=StreamTalk().process(thread="thr_1").says("turn.started").done(),
    ),
    Case(
        rule="exec.turn-before-items",
        good=plain(),
        witnesses=(TURN,),
        bad=StreamTalk()
        .process()
        .says("thread.started", thread_id="thr_1")
        .completed(message("too early"))
        .says("turn.started")
        .done(),
        found=(Found("agent_message of p1, item event 1", (2,)),),
        not_exercised=opened().done(),
    ),
    Case(
        rule="exec.end-is-last",
        good=plain(),
        witnesses=(TURN,),
        bad=opened()
        .says("turn.completed", usage={})
        .completed(message("late"))
        .says("turn.failed", error={"message": "no"})
        .exits()
        .process()
        .says("turn.completed", usage={})
        .exits(),
        found=(Found(TURN, (3, 4)), Found(TURN, (3, 5)), Found("process p2", (7,))),
        not_exercised=opened().says("error", message="out of memory").exits(1),
    ),
    Case(
        rule="exec.turn-ends",
        good=opened().says("error", message="out of memory").exits(1).process().opens().fails(),
        witnesses=(TURN, "turn 1 of p2"),
        bad=opened().completed(message("Hello.")).exits(),
        found=(Found(TURN, (2,)),),
        not_exercised=silent(),
    ),
    Case(
        rule="exec.error-is-fatal",
        # The second process ends with the event, as a run does that a signal ends.
        good=opened()
        .says("error", message="refused")
        .fails()
        .process()
        .opens()
        .says("error", message="interrupted")
        .exits(1),
        witnesses=(TURN, "turn 1 of p2"),
        bad=opened().says("error", message="again in a second").done(),
        found=(Found(TURN, (3, 4)),),
        not_exercised=plain(),
    ),
    Case(
        rule="exec.events-typed",
        good=plain(),
        witnesses=("events turn.started of p1",),
        bad=opened()
        .line(b"warming up")
        .line({"kind": "turn.completed"})
        .line({"type": "turn.paused"})
        .exits(),
        found=(
            Found("a line of p1", (3,), Level.SHOULD),
            Found("a line of p1", (4,)),
            Found("events turn.paused of p1", (5,), Level.INFO),
        ),
        not_exercised=silent(),
    ),
    Case(
        rule="exec.event-members",
        good=opened().says("error", message="refused").fails(),
        witnesses=("turn.failed of p1", "error of p1", "thread.started of p1"),
        bad=StreamTalk()
        .process()
        .says("thread.started", id="thr_1")
        .says("turn.started")
        .says("item.completed", item="Hello.")
        .says("error", message=["refused"])
        .says("turn.failed", error={"text": "refused"})
        .exits(1)
        .process()
        .says("turn.completed")
        .exits(),
        found=(
            Found("thread.started of p1", (1,)),
            Found("item.completed of p1", (3,)),
            Found("error of p1", (4,), Level.SHOULD),
            Found("turn.failed of p1", (5,)),
            Found("turn.completed of p2", (7,)),
        ),
        not_exercised=StreamTalk().process().line({"type": "turn.paused"}).exits(),
    ),
    Case(
        rule="exec.usage",
        good=opened().done(reasoning_output_tokens=1),
        witnesses=("usage of p1",),
        bad=opened().done(output_tokens="2"),
        found=(Found("usage of p1", (3,)),),
        not_exercised=opened().says("turn.completed", usage=None).exits(),
    ),
    Case(
        rule="exec.item-members",
        good=opened()
        .started(message("", text=None))
        .completed(message("Hello."))
        .started({"type": "command_execution", "command": "ls", "status": "running"})
        .completed(command(exit_code=0, status="completed"))
        .completed({"type": "todo_list", "items": [{"text": "look", "completed": False}]})
        .done(),
        witnesses=("agent_message of p1, item event 1", "command_execution i-1 of p1"),
        bad=opened()
        .completed({"type": "agent_message", "message": "Hello."})
        .completed({"type": "todo_list", "items": [{"text": "look", "status": "pending"}, "do"]})
        .completed({"text": "Hello."})
        .completed({"type": "plan", "text": "look"})
        .completed({"type": "reasoning", "text": ["a", "b"]})
        .completed(
            {
                "id": "c",
                "type": "command_execution",
                "command": "ls",
                "aggregated_output": "",
                "status": 1,
            }
        )
        .done(),
        found=(
            Found("agent_message of p1, item event 1", (3,)),
            Found("todo_list of p1, item event 2", (4,)),
            Found("todo_list of p1, item event 2", (4,)),
            Found("item of p1, item event 3", (5,)),
            Found("plan of p1, item event 4", (6,), Level.INFO),
            Found("reasoning of p1, item event 5", (7,), Level.SHOULD),
            Found("command_execution c of p1", (8,), Level.INFO),
        ),
        not_exercised=opened().completed("Hello.").done(),  # pyright: ignore[reportArgumentType]
    ),
    Case(
        rule="exec.item-life",
        good=opened().started(command()).updated(command()).completed(command(exit_code=0)).done(),
        witnesses=("command_execution i-1 of p1",),
        bad=opened()
        .updated(command())
        .started(command())
        .completed(command())
        .completed(command())
        .started(message("", id="i-2"))
        .completed(command(id="i-2"))
        .done(),
        found=(
            Found("command_execution i-1 of p1", (3, 4), Level.SHOULD),
            Found("command_execution i-1 of p1", (5, 6), Level.SHOULD),
            Found("command_execution i-2 of p1", (7, 8), Level.SHOULD),
        ),
        # Without ids nobody can say which item an event is of.
        not_exercised=opened().completed(message("Hello.")).completed(message("Hello.")).done(),
    ),
    Case(
        rule="exec.resumed-thread",
        good=resumed("thr_1", "hello", "and now?"),
        witnesses=("thread t in p2",),
        bad=resumed("thr_2", "hello", "and now?"),
        found=(Found("thread t in p2", (5,)),),
        not_exercised=plain(),
    ),
    Case(
        rule="exec.resumed-history",
        good=resumed("thr_1", "<context>", "hello", "and now?"),
        witnesses=("thread t in p2",),
        bad=resumed("thr_1", "<context>", "and now?"),
        found=(Found("thread t in p2", (6,)),),
        not_exercised=plain(),
    ),
    Case(
        rule="exec.thread-kept",
        good=plain().searched(kept("sessions/2025/a-thr_1.jsonl", named=("thr_1", "sessions"))),
        witnesses=("thread thr_1",),
        bad=plain().searched(kept("history.jsonl", held=("thr_1",))),
        found=(Found("thread thr_1", (1,)),),
        # Something is kept there, in a form that does not show the id.
        not_exercised=plain().searched(kept("sessions/all.bin", named=("sessions",))),
    ),
    Case(
        rule="exec.model-asked",
        good=opened(model="small").calls("hello", model="small").answers("Hi.").done(),
        witnesses=("thread t in p1",),
        bad=opened(model="small").calls("hello", model="large").answers("Hi.").done(),
        found=(Found("thread t in p1", (2,)),),
        not_exercised=opened().calls("hello").answers("Hi.").done(),
    ),
    Case(
        rule="exec.failure-told",
        good=opened().calls("hello").refuses(429).fails(),
        witnesses=(TURN,),
        bad=opened().calls("hello").refuses(401).done(),
        found=(Found(TURN, (2, 3)),),
        # What a program does about a failing server is open.
        not_exercised=opened().calls("hello").refuses(500).done(),
    ),
    Case(
        rule="exec.agrees-with-session",
        good=compared(SessionItem("agent_message", "Hello."), SessionItem("command_execution")),
        witnesses=("turn u1 in p1",),
        bad=compared(SessionItem("agent_message", "Hello."), SessionItem("file_change")),
        found=(Found("turn u1 in p1", (2, 5), Level.SHOULD),),
        # The session was not played; a model call was refused.
        not_exercised=opened().calls("hello").answers("Hello.").completed(message("Hello.")).done(),
    ),
    Case(
        rule="exec.structured-answer",
        good=asked(SCHEMA, '{"n": 1}', '{"n": 1}'),
        witnesses=(TURN,),
        bad=asked(SCHEMA, '{"n": 1}', "n is 1"),
        found=(Found(TURN, (2, 3)),),
        # The model did not keep to the schema.
        not_exercised=asked(SCHEMA, "n is 1", "n is 1"),
    ),
]
