"""Turns of SDKs for rules: the scripted agent's start, and the events that it wrote."""

import json
from typing import Any, Final, cast

from harness.judge.base import Monitor, Outcomes, listen
from harness.judge.rules.shared.violations import Member, root_member
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall, ModelEnd
from harness.trace.order import marked_before
from harness.trace.surface.sdk import Call, Calls
from harness.trace.trace import Trace

ENDS: Final = ("turn.completed", "turn.failed")
CALLS: Final = ("run", "runStreamed")


class SdkRule(Monitor):
    """Base of rules on SDK turns; `judge_turn` is called at the end of each."""

    def begin(self) -> None:
        """Set up `calls`, the view of the turns."""
        self.calls = cast("Calls", self.conversation)

    @listen(*(("over", call) for call in CALLS))
    def on_turn_end(self, frame: Frame) -> Outcomes:
        """Judge a turn that is over."""
        call = self.calls.call_of(frame)
        return None if call is None else self.judge_turn(call, frame)

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        """Judge a turn; `end` is the message of its end."""
        raise NotImplementedError


def option(call: Call, whose: str, name: str) -> Any:
    """Return an option of the client ("agent") or the thread ("thread"), None if omitted."""
    return obj(obj(call.driver.json).get(whose)).get(name)


def turn_option(call: Call, name: str) -> Any:
    """Return an option of the turn, None if it is omitted."""
    return obj(obj(call.request.json).get("options")).get(name)


def agent_start(call: Call) -> Member | None:
    """Return the start of the agent as a member, None if it was not started."""
    return root_member(call.starts[0], "started") if call.starts else None


def argv(call: Call) -> list[str]:
    """Return the arguments that the agent was started with."""
    return [text(word) for word in arr(_start_of(call).get("argv"))]


def env(call: Call) -> dict[str, Any]:
    """Return the recorded environment variables of the agent: those that the play names."""
    return obj(_start_of(call).get("env"))


def reached_agent(call: Call, value: str) -> bool:
    """Return whether a string is in the agent's arguments, environment or input, or its folder."""
    started = _start_of(call)
    texts = [*argv(call), *map(text, env(call).values()), text(started.get("stdin"))]
    return any(value in sent_text for sent_text in texts) or value == started.get("cwd")


def schema_reached_agent(call: Call, schema: Any) -> bool:
    """Return whether a JSON value is an argument of the agent, or in a file that one names."""
    files = obj(_start_of(call).get("files")).values()
    return any(value == schema for value in (*files, *map(_json, argv(call))))


def _json(word: str) -> Any:
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        return None


def _start_of(call: Call) -> dict[str, Any]:
    return obj(obj(call.starts[0].json).get("started")) if call.starts else {}


def end_written(call: Call) -> dict[str, Any]:
    """Return the first event of the scripted agent that ends its turn, {} for none."""
    ends = [event for event in call.writes if event.get("type") in ENDS]
    return ends[0] if ends else {}


def completed_items(call: Call) -> list[dict[str, Any]]:
    """Return the items that the scripted agent completed, in order."""
    return [
        obj(event.get("item")) for event in call.writes if event.get("type") == "item.completed"
    ]


def model_ends(trace: Trace, calls: Calls, call: Call) -> list[ModelEnd]:
    """Return the answers of the model to a completed turn of a real agent.

    Only the turns of one thread are considered; [] if the thread of a call is uncertain.
    """
    before = [earlier.end for earlier in calls.earlier_calls(call) if earlier.end is not None]
    first, last = before[-1] if before else call.driver, call.end
    thread = text(obj(call.driver.json).get("name"))
    alone = all(other.driver is call.driver for other in calls.calls.values())
    call_ids = {
        mark.body.call
        for mark in trace.marks_of(ModelCall)
        if last is not None
        and marked_before(mark, last)
        and not marked_before(mark, first)
        and (mark.body.thread == thread or alone)
    }
    return [mark.body for mark in trace.marks_of(ModelEnd) if mark.body.call in call_ids]


def was_aborted(call: Call) -> bool:
    """Return whether the play aborted the signal of the turn."""
    return bool(text(obj(call.request.json).get("abort")))


def includes(value: Any, expected: Any) -> bool:
    """Return whether a value has all members of `expected`; extra members are ignored.

    Lists must have the same length.
    """
    if isinstance(expected, dict):
        members = cast("dict[str, Any]", expected)
        return isinstance(value, dict) and all(
            key in value and includes(obj(value)[key], member_value)
            for key, member_value in members.items()
        )
    if isinstance(expected, list):
        elements, other = arr(value), cast("list[Any]", expected)
        return len(elements) == len(other) and all(map(includes, elements, other))
    return bool(value == expected)
