"""Good traces of `agent exec`, for `good_traces`."""

import json
from collections.abc import Callable

from harness.trace.marks import SessionItem, SessionReport
from harness.trace.trace import Trace
from tests.rules.streams import StreamTalk, command, kept, message

SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


def exec_plain() -> Trace:
    """One process: a command, a plan, the message, the usage."""
    talk = StreamTalk("exec-plain@exec").process(model="mock-model").opens()
    talk.calls("hello").answers("Hello.").started(command())
    talk.completed(command(aggregated_output="a\n", exit_code=0, status="completed"))
    plan = {"id": "i-2", "type": "todo_list"}
    talk.started({**plan, "items": [{"text": "look", "completed": False}]})
    talk.updated({**plan, "items": [{"text": "look", "completed": True}]})
    talk.completed(message("Hello.", id="i-3"))
    talk.completed({**plan, "items": [{"text": "look", "completed": True}]})
    return talk.done().trace()


def exec_resumed() -> Trace:
    """Two processes of one thread, which is kept below the home."""
    talk = StreamTalk("exec-resumed@exec").process("hello").opens()
    talk.calls("hello").answers("Hi.").completed(message("Hi.", id="i-1")).done()
    talk.searched(kept("sessions/2025/a-thr_1.jsonl", named=("thr_1", "sessions")))
    talk.process("and now?", thread="thr_1", earlier=("hello",)).opens()
    talk.calls("hello", "and now?").answers("Still here.")
    return talk.completed(message("Still here.", id="i-1")).done().trace()


def exec_failed() -> Trace:
    """A model that refuses: an error, and the turn fails."""
    talk = StreamTalk("exec-failed@exec").process().opens().calls("hello").refuses(401)
    return talk.says("error", message="wrong key").fails("wrong key").trace()


def exec_structured() -> Trace:
    """An answer that must fit a schema, and does."""
    talk = StreamTalk("exec-structured@exec").process(schema=json.dumps(SCHEMA)).opens()
    talk.calls("hello", schema=True).answers('{"n": 1}')
    return talk.completed(message('{"n": 1}')).done().trace()


def exec_compared() -> Trace:
    """A turn that the session told too."""
    talk = StreamTalk("exec-compared@exec")
    talk.mark(SessionReport("u1", "completed", (SessionItem("agent_message", "Hello."),)))
    talk.process().opens().calls("hello").answers("Hello.")
    return talk.completed(message("Hello.", id="i-1")).done().trace()


STREAMS: dict[str, Callable[[], Trace]] = {
    "exec-plain": exec_plain,
    "exec-resumed": exec_resumed,
    "exec-failed": exec_failed,
    "exec-structured": exec_structured,
    "exec-compared": exec_compared,
}
