"""`harness doctor --sdk-cmd`: check whether an SDK and its driver can be judged; judge nothing."""

import json
import shlex
from collections.abc import Iterator
from typing import Any

from anyio.from_thread import start_blocking_portal

from harness.cli.commands.exec_doctor import impatient_profile
from harness.play.bench import Bench, open_bench
from harness.play.config import Config
from harness.play.interruption import Interrupted, Interruption
from harness.play.run import Run
from harness.play.session.servers import SetupFailed
from harness.play.session.setup_diagnosis import Check
from harness.protocol.values import arr, dig, obj, text
from harness.scenario.loader import Loaded, load_text
from harness.trace.difference import literal
from harness.trace.surface.sdk import Call, Calls
from harness.trace.surfaces import SDK
from harness.trace.trace import Trace

_THREAD = "thread-of-the-doctor"
_EVENTS = [
    {"type": "thread.started", "thread_id": _THREAD},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": "Hello."}},
    {
        "type": "turn.completed",
        "usage": {"input_tokens": 1, "cached_input_tokens": 0, "output_tokens": 1},
    },
]
_CALLS = f"""
title: a turn of each call
surfaces: [sdk]
client:
  - sdk:
      turns:
        - {{call: run, input: hello, writes: {json.dumps(_EVENTS)}}}
        - {{call: runStreamed, input: hello, writes: {json.dumps(_EVENTS)}}}
"""
_TURN = """
title: a plain turn
surfaces: [session, sdk]
model: [{reply: [{message: "Hello."}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: "hello", as: u}
  - wait: {turn: u}
"""
_PROTOCOL = (
    "a driver reads one line of JSON from its standard input, makes the calls that it asks for, "
    "and writes a line of JSON for each turn\nits lines: harness docs sdk-judging#the-driver"
)
_PATH = (
    "give the client the path that the request has as agent.agentPathOverride, by the SDK's own "
    "name for it"
)
_ID = "write the thread's id as threadId into the line that ends a turn"
_MODEL = (
    "the agent is told the model's address by its environment, which the SDK passes on where no "
    "env is given: see harness doctor --agent-cmd"
)


def examine_sdk(config: Config, interruption: Interruption) -> Iterator[Check]:
    """Yield the checks in order; stop after one that makes the rest meaningless."""
    profile = impatient_profile(config)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            open_bench(profile, config.book, base=config.base, worker="doctor", scale=config.scale)
        ) as bench,
    ):

        def play(loaded: Loaded) -> Run:
            return interruption.wait(portal.start_task_soon(bench.run, loaded))

        try:
            run = play(load_text(_CALLS, name="doctor").on_surface(SDK))
            checks = list(_on_scripted_agent(run))
            yield from checks
            if not profile.exec.command or any(check.good is False for check in checks):
                return
            yield from _on_agent(play(load_text(_TURN, name="doctor").on_surface(SDK)), bench)
        except Interrupted as signal:
            message = f"interrupted ({signal}): whether it can be judged is not known"
            yield Check(None, message, last=True)
        except SetupFailed as failed:
            yield Check(False, failed.finding.message, "harness docs sdk-judging", last=True)


def _on_scripted_agent(run: Run) -> Iterator[Check]:
    first, *further_calls = _calls(run.trace)
    if first.end is None:
        reason = run.unmet.message if run.unmet is not None else "it told nothing"
        yield Check(False, f"the driver does not understand its calls: {reason}", _PROTOCOL)
        return
    yield Check(True, "the driver starts, and answers its calls")
    if not first.starts:
        yield Check(False, f"run never started the agent: {_end_words(first)}", _PATH)
        return
    argv = [text(word) for word in arr(dig(obj(first.starts[0].json), "started", "argv"))]
    words = literal(shlex.join(argv), 100)
    yield Check(True, f"it starts the agent, with the words {words}")
    yield _result_check(first, "run")
    yield _streaming_check(further_calls[0] if further_calls else None)
    thread_id = obj(first.end.json).get("threadId")
    if thread_id != _THREAD:
        message = f"after a turn the thread's id is {literal(thread_id)}; the agent told {_THREAD}"
        yield Check(False, message, _ID)


def _on_agent(run: Run, bench: Bench) -> Iterator[Check]:
    (call,) = _calls(run.trace)[:1]
    if run.model.calls:
        yield Check(True, f"its agent calls the model ({len(run.model.calls)} call(s))")
    else:
        message = f"its agent did not call the model at {bench.model_url}: {_end_words(call)}"
        yield Check(False, message, _MODEL)
        return
    yield _result_check(call, "run on the agent")


def _streaming_check(call: Call | None) -> Check:
    outcome = obj(call.end.json) if call is not None and call.end is not None else {}
    if call is not None and call.events and outcome.get("over") == "events":
        return Check(True, f"runStreamed yields events ({len(call.events)})")
    result_words = (
        f"{len(call.events)} event(s), then {_end_words(call)}" if call is not None else "nothing"
    )
    advice = 'write {"turn": 2, "event": {…}} for each, and in the end "over": "events"'
    return Check(False, f"runStreamed gives {result_words}", advice)


def _result_check(call: Call, call_name: str) -> Check:
    outcome = obj(call.end.json) if call.end is not None else {}
    final = dig(outcome, "result", "finalResponse")
    if outcome.get("over") == "result" and final == "Hello.":
        return Check(True, f"{call_name} gives a result (finalResponse {literal(final)})")
    advice = (
        'the agent said "Hello." and completed its turn: write {"turn": 1, "over": "result", '
        '"result": {"finalResponse": …, "items": […], "usage": …}, "threadId": …}'
    )
    return Check(False, f"{call_name} gives {_end_words(call)}", advice)


def _end_words(call: Call) -> str:
    """Return the end of a call, in words."""
    outcome: dict[str, Any] = obj(call.end.json) if call.end is not None else {}
    kind = text(outcome.get("over"))
    if kind == "error":
        error = obj(outcome.get("error"))
        name, message = text(error.get("name")), text(error.get("message"))
        return f"an error, {name or 'of no name'}: {message[:300]}"
    return f"{kind}: {literal(outcome.get('result'))}" if kind == "result" else (kind or "no end")


def _calls(trace: Trace) -> list[Call]:
    calls = Calls()
    for frame in trace.frames:
        calls.feed(frame)
    return list(calls.calls.values())
