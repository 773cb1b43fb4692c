"""Good conversations, which obey every rule, as code; the basis of all faults.

`python -m tests.rules.good_traces` writes them to fixtures/traces/good; a test compares. Each fault
must find a place in one of them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.trace.marks import ModelListens
from harness.trace.store import save
from harness.trace.trace import Trace
from tests.rules.good_approvals import APPROVALS
from tests.rules.good_clients import CLIENTS
from tests.rules.good_commands import COMMANDS
from tests.rules.good_durability import DURABILITY
from tests.rules.good_history import HISTORY
from tests.rules.good_lists import LISTS
from tests.rules.good_mcp import MCP
from tests.rules.good_sdk import SDK
from tests.rules.good_skills import SKILLS
from tests.rules.good_storage import STORAGE
from tests.rules.good_streams import STREAMS
from tests.rules.traces import (
    THREAD,
    TROUBLE,
    TURN,
    Talk,
    agent_message,
    command,
    dynamic_call,
    mcp_call,
    settings,
    step,
    stored_plain_turn,
    thread_object,
    turn_object,
    user_message,
)

FOLDER = Path(__file__).parents[2] / "fixtures" / "traces" / "good"
SUMMARY = "item/reasoning/summaryTextDelta"
PART_ADDED = "item/reasoning/summaryPartAdded"
RAW = "item/reasoning/textDelta"
OUTPUT = "item/commandExecution/outputDelta"


def plain_turn() -> Trace:
    """A thread, a turn, one answer in two deltas."""
    talk = Talk("plain-turn").sends(
        {"method": "initialize", "id": 0, "params": {"clientInfo": {"name": "x", "version": "1"}}}
    )
    talk.answers({"userAgent": "by-hand/1"}, to=0).sends({"method": "initialized"})
    return talk.start_thread().plain_turn().trace()


def many_deltas() -> Trace:
    """Two messages in one turn, streamed in many small pieces, some of them empty or not ASCII."""
    first = [f"word{n} " for n in range(30)] + ["", "\u00e9\u00e8", "\U0001f600", "\n"]
    talk = Talk("many-deltas").start_thread().start_turn()
    talk.message("m-1", *first).message("m-2", *(str(n) for n in range(20)))
    return talk.item(agent_message("m-3", "whole at once")).end_turn().trace()


def reasoning() -> Trace:
    """A reasoning item with two summary parts, one with raw content, then the answer."""
    talk = Talk("reasoning").start_thread().start_turn(text="think")
    talk.started({"type": "reasoning", "id": "r-1", "summary": [], "content": []})
    for index, deltas in enumerate((("**First** ", "part."), ("Second part.",))):
        talk.tells(PART_ADDED, threadId="thr_1", turnId=TURN, itemId="r-1", summaryIndex=index)
        for delta in deltas:
            talk.delta("r-1", delta, method=SUMMARY, summaryIndex=index)
    summary = ["**First** part.", "Second part."]
    talk.completed({"type": "reasoning", "id": "r-1", "summary": summary, "content": []})
    talk.started({"type": "reasoning", "id": "r-2", "summary": [], "content": []})
    talk.delta("r-2", "raw ", method=RAW, contentIndex=0)
    talk.delta("r-2", "thoughts", method=RAW, contentIndex=0)
    talk.completed({"type": "reasoning", "id": "r-2", "summary": [], "content": ["raw thoughts"]})
    return talk.message("m-1", "Done").end_turn().trace()


def interrupted() -> Trace:
    """A turn interrupted in the middle of an answer; the item it cut off is completed."""
    talk = Talk("interrupted").start_thread().start_turn()
    talk.started(agent_message("m-1", "")).delta("m-1", "partial ").delta("m-1", "text")
    talk.interrupt().answers({})
    talk.completed(agent_message("m-1", "partial text"))
    return talk.end_turn(status="interrupted").trace()


def failed() -> Trace:
    """A turn that fails at once, announced by an error notification."""
    talk = Talk("failed").start_thread().start_turn().failing(will_retry=False)
    return talk.end_turn(status="failed", error=TROUBLE).trace()


def retry() -> Trace:
    """A disconnect that is announced, retried, and then answered."""
    talk = Talk("retry").start_thread().start_turn().failing(will_retry=True)
    return talk.message("m-1", "recov", "ered").end_turn().trace()


def two_turns_read() -> Trace:
    """Two turns, then thread/read without and with the turns."""
    talk = Talk("two-turns-read").start_thread().plain_turn().plain_turn("turn_2")
    talk.read(include=False)
    return talk.read(stored_plain_turn(), stored_plain_turn("turn_2")).trace()


def two_threads() -> Trace:
    """Two threads of one client, their turns interleaved."""
    talk = Talk("two-threads").start_thread().start_thread("thr_2")
    talk.start_turn().start_turn("turn_2", "thr_2", "other")
    talk.started(agent_message("m-1", "")).started(agent_message("m-1", ""), "turn_2", "thr_2")
    talk.delta("m-1", "one").delta("m-1", "two", "turn_2", "thr_2")
    talk.completed(agent_message("m-1", "two"), "turn_2", "thr_2").end_turn("turn_2", "thr_2")
    return talk.completed(agent_message("m-1", "one")).end_turn().trace()


def steered() -> Trace:
    """Input added to a running turn shows as a second userMessage."""
    talk = Talk("steered").start_thread().start_turn()
    added = [{"type": "text", "text": "and more"}]
    talk.asks("turn/steer", threadId="thr_1", expectedTurnId=TURN, input=added)
    talk.answers({"turnId": TURN}).item(user_message("u-2", "and more"))
    return talk.message("m-1", "Both.").end_turn().trace()


def steering() -> Trace:
    """Input added to a turn, and what was refused: for no turn yet, for another one, too late."""
    talk = Talk("steering").start_thread()
    steer(talk, "too early", expected="turn_0").refuses()
    talk.start_turn(text="hello").calls("hello")
    steer(talk, "not this one", expected="turn_0").refuses()
    steer(talk, "and more").answers({"turnId": TURN}).item(user_message("u-2", "and more"))
    talk.message("m-1", "First.").ends().calls("hello", "and more", call=2)
    talk.message("m-2", "Both.").ends(2).end_turn()
    steer(talk, "too late").refuses()
    talk.start_turn("turn_2", text="go on").calls("hello", "and more", "go on", call=3)
    return talk.message("m-3", "On.", turn="turn_2").ends(3).end_turn("turn_2").trace()


def steer(talk: Talk, words: str, *, expected: str = TURN, thread: str = "thr_1") -> Talk:
    """turn/steer alone."""
    said = [{"type": "text", "text": words}]
    return talk.asks("turn/steer", threadId=thread, expectedTurnId=expected, input=said)


WORDS: list[dict[str, str]] = [{"approvalPolicy": "reject"}, {"effort": "high"}, {}]
OVERRIDES: dict[str, Any] = {
    "model": "other-model",
    "effort": "low",
    "summary": "concise",
    "outputSchema": {"type": "object"},
}


def overrides() -> Trace:
    """A turn with a model, effort, summary and schema of its own, and one after it with none."""
    talk = Talk("overrides").start_thread().ask_turn(text="first", **OVERRIDES).reply_turn()
    talk.status("active").turn_started().item(user_message("u-1", "first"))
    talk.calls("first", model="other-model", effort="low", summary="concise", schema=True)
    talk.message("m-1", "{}").end_turn().start_turn("turn_2", text="second")
    talk.calls("first", "second", model="other-model")
    return talk.message("m-2", "Yes.", turn="turn_2").end_turn("turn_2").trace()


def read_while_active() -> Trace:
    """A thread read in the middle of a turn and after it, with the status of each moment."""
    talk = Talk("read-while-active").start_thread().start_turn()
    talk.started(agent_message("m-1", "")).delta("m-1", "Hel").read_status("active")
    talk.delta("m-1", "lo").completed(agent_message("m-1", "Hello"))
    return talk.end_turn().read_status("idle").trace()


def refused() -> Trace:
    """Requests that fail are answered with errors; the thread goes on."""
    talk = Talk("refused").start_thread().ask_turn("thr_9").refuses("no such thread")
    talk.interrupt("turn_9").refuses("no such turn")
    return talk.plain_turn().read(turn_object(status="completed")).trace()


def told() -> Trace:
    """A turn of two model calls: another model answers, a plan is shared and changed, tokens."""
    first, second = [step("look"), step("leap")], [step("look", "completed"), step("leap")]
    talk = Talk("told").start_thread().start_turn()
    talk.calls("hello").ends(usage=15, plans=[first], answers="other-model").rerouted("other-model")
    talk.plan(*first).usage()
    talk.calls("hello", call=2).ends(2, usage=20, plans=[second]).plan(*second).usage()
    return talk.message("m-1", "Planned.").end_turn().trace()


def retried() -> Trace:
    """A model's answer breaks off, which is told, and the call is made again."""
    talk = Talk("retried").start_thread().start_turn().calls("hello").ends(outcome="disconnected")
    talk.failing(will_retry=True).calls("hello", call=2).ends(2, usage=15).usage()
    return talk.message("m-1", "recov", "ered").end_turn().trace()


def causes() -> Trace:
    """Turns that fail: their caller is not known, nothing can be reached, the stream breaks off."""
    talk = Talk("causes").start_thread().start_turn().calls("hello")
    talk.ends(outcome="status 401", code="invalid_api_key", said="who are you?")
    error = {"message": "refused", "agentErrorInfo": "Unauthorized"}
    error["additionalDetails"] = "invalid_api_key: who are you?"
    talk.end_turn(status="failed", error=error)
    talk.mark(ModelListens(listening=False)).start_turn("turn_2")
    error = {"message": "refused", "agentErrorInfo": "HttpConnectionFailed"}
    talk.end_turn("turn_2", status="failed", error=error).mark(ModelListens(listening=True))
    talk.start_turn("turn_3").calls("hello", call=2).ends(2, "disconnected")
    return talk.end_turn("turn_3", status="failed", error=TROUBLE).trace()


def image_rejected() -> Trace:
    """A turn fails by its image; the next one does without it."""
    talk = Talk("image-rejected").start_thread().start_turn().calls("hello", images=("a1b2",))
    talk.ends(outcome="status 400", code="invalid_image", said="what is that?")
    error = {"message": "refused", "agentErrorInfo": "BadRequest"}
    error["additionalDetails"] = "invalid_image: what is that?"
    talk.end_turn(status="failed", error=error).start_turn("turn_2", text="again")
    talk.calls("hello", "again", call=2).ends(2, usage=15).usage()
    return talk.message("m-1", "better", turn="turn_2").end_turn("turn_2").trace()


def commands() -> Trace:
    """A command in the thread's folder, then one in that of a turn, and one in the turn after."""
    talk = Talk("commands").start_thread().start_turn().calls("hello").ends(usage=15).usage()
    says = {"command": "bash -lc 'echo one; echo two >&2'"}
    talk.started(command("c-1", **says)).delta("c-1", "one\n", method=OUTPUT)
    talk.delta("c-1", "two\n", method=OUTPUT)
    more: dict[str, Any] = {"aggregatedOutput": "one\ntwo\n", "exitCode": 0, "durationMs": 5}
    talk.completed(command("c-1", "completed", **says, **more)).end_turn()
    for number, params in ((2, {"cwd": "/home/user/other"}), (3, {})):
        turn = f"turn_{number}"
        talk.ask_turn(text="go on", **params).reply_turn(turn).status("active").turn_started(turn)
        talk.item(user_message(f"u-{number}", "go on"), turn)
        talk.calls("hello", "go on", call=number).ends(number, usage=15).usage()
        begun = command(f"c-{number}", cwd="/home/user/other")
        talk.started(begun, turn).completed({**begun, "status": "failed", "exitCode": 1}, turn)
        talk.end_turn(turn)
    return talk.trace()


def at_work() -> Trace:
    """Two commands at once, of which the model is told, and the model's answer."""
    talk = Talk("at-work").start_thread().start_turn().calls("hello").ends(usage=15, tools=2)
    ran = {name: {"command": f"echo {name}", "processId": name} for name in ("one", "two")}
    for name, said in ran.items():
        talk.started(command(f"c-{name}", **said))
    for name, said in ran.items():
        done: dict[str, Any] = {"aggregatedOutput": f"{name}\n", "exitCode": 0, "durationMs": 5}
        talk.completed(command(f"c-{name}", "completed", **said, **done))
    told = [f"Exit code: 0\nOutput:\n{name}\n" for name in ran]
    answer = {"text": "Both have run.", "phase": ""}
    talk.usage().calls("hello", call=2, outputs=tuple(told)).ends(2, usage=20, texts=[answer])
    return talk.message("m-1", "Both ", "have run.").usage().end_turn().trace()


def mcp_calls() -> Trace:
    """A tool of an MCP server that tells of its progress, and one that fails."""
    talk = Talk("mcp-calls").start_thread().start_turn()
    numbers = {"a": 2, "b": 3}
    talk.started(mcp_call("t-1", arguments=numbers))
    talk.tells("item/mcpToolCall/progress", message="half")
    talk.completed(mcp_call("t-1", "completed", arguments=numbers, result={"content": []}))
    talk.started(mcp_call("t-2")).completed(mcp_call("t-2", "failed", error={"message": "no"}))
    return talk.end_turn().trace()


def mcp_called() -> Trace:
    """The model calls a tool of an MCP server, and answers when it has the result."""
    talk = Talk("mcp-called").start_thread().start_turn().calls("hello")
    talk.ends(tools=1, mcp=[("tiny", "add")], usage=20).usage()
    talk.item(mcp_call("t-1", "completed", result={"content": []}))
    talk.calls("hello", call=2).ends(2, usage=20, texts=[{"text": "Five.", "phase": ""}])
    return talk.message("m-1", "Five.").usage().end_turn().trace()


def dynamic_calls() -> Trace:
    """A tool that the client brought, with success and without."""
    talk = Talk("dynamic-calls").start_thread().start_turn()
    content = [{"type": "inputText", "text": "said"}]
    talk.item(dynamic_call("d-1", "completed", success=True, contentItems=content))
    talk.item(dynamic_call("d-2", "failed", success=False, contentItems=content))
    return talk.end_turn().trace()


def bare_thread() -> Trace:
    """A thread that was started without any param, read before and after a turn."""
    talk = Talk("bare-thread").asks("initialize", clientInfo={"name": "x", "version": "1"})
    talk.answers({"userAgent": "by-hand/1"}).asks("thread/start")
    talk.answers({"thread": thread_object(), **settings()})
    talk.tells("thread/started", thread=thread_object()).read(include=False)
    return talk.plain_turn().read(stored_plain_turn()).trace()


def words() -> Trace:
    """A thread with a personality and one without; turns with words of their own, and without."""
    talk = Talk("words").asks("thread/start", cwd="/home/user/project", personality="friendly")
    talk.answers({"thread": thread_object("thr_2"), **settings()})
    talk.tells("thread/started", thread=thread_object("thr_2")).start_thread()
    for number, more in enumerate(WORDS, start=1):
        turn = f"turn_{number}"
        talk.ask_turn(**more).reply_turn(turn).status("active").turn_started(turn)
        talk.message(f"m-{number}", "Yes.", turn=turn).end_turn(turn)
    return talk.read(include=False).trace()


def compacted() -> Trace:
    """Two turns, then the history is compacted on request."""
    talk = Talk("compacted").start_thread().plain_turn().plain_turn("turn_2")
    talk.asks("thread/compact/start", threadId=THREAD).answers({})
    talk.turn_started("turn_3").status("active")
    talk.item({"type": "contextCompaction", "id": "cut"}, "turn_3").usage()
    return talk.end_turn("turn_3").trace()


GOOD: dict[str, Callable[[], Trace]] = {
    "plain-turn": plain_turn,
    "many-deltas": many_deltas,
    "reasoning": reasoning,
    "interrupted": interrupted,
    "failed": failed,
    "retry": retry,
    "two-turns-read": two_turns_read,
    "two-threads": two_threads,
    "steered": steered,
    "steering": steering,
    "overrides": overrides,
    "read-while-active": read_while_active,
    "refused": refused,
    **APPROVALS,
    "told": told,
    "retried": retried,
    "causes": causes,
    "image-rejected": image_rejected,
    "commands": commands,
    "at-work": at_work,
    "mcp-calls": mcp_calls,
    "mcp-called": mcp_called,
    "dynamic-calls": dynamic_calls,
    "bare-thread": bare_thread,
    "words": words,
    "compacted": compacted,
    **STORAGE,
    **SKILLS,
    **LISTS,
    **HISTORY,
    **DURABILITY,
    **CLIENTS,
    **STREAMS,
    **MCP,
    **COMMANDS,
    **SDK,
}


if __name__ == "__main__":
    for name, build in GOOD.items():
        save(build(), FOLDER / f"{name}.jsonl")
