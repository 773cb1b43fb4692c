"""Turns of SDKs for rules: what the scripted agent was given, and what it wrote."""

import json
from typing import Any, Final, cast

from harness.judge.base import Monitor, Outcomes, listen
from harness.judge.rules.shared.violations import Member, whole
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall, ModelEnd
from harness.trace.order import marked_before
from harness.trace.surface.sdk import Call, Calls
from harness.trace.trace import Trace

ENDS: Final = ("turn.completed", "turn.failed")
CALLS: Final = ("run", "runStreamed")


class SdkRule(Monitor):
    """A rule on the turns of a play: `turn` is asked of each that is over."""

    def begin(self) -> None:
        """The view of this surface."""
        self.calls = cast("Calls", self.conversation)

    @listen(*(("over", call) for call in CALLS))
    def ends(self, frame: Frame) -> Outcomes:
        """Judge a turn that is over."""
        call = self.calls.of(frame)
        return None if call is None else self.turn(call, frame)

    def turn(self, call: Call, over: Frame) -> Outcomes:
        """Judge it; `over` is the message of its end."""
        raise NotImplementedError


def option(call: Call, whose: str, name: str) -> Any:
    """An option of the client ("agent") or of the thread ("thread"), None where it is left out."""
    return obj(obj(call.driver.json).get(whose)).get(name)


def turn_option(call: Call, name: str) -> Any:
    """An option of the turn, None where it is left out."""
    return obj(obj(call.asked.json).get("options")).get(name)


def given(call: Call) -> Member | None:
    """Return the start of the agent, None if it was not started."""
    return whole(call.started[0], "started") if call.started else None


def argv(call: Call) -> list[str]:
    """The words of the agent's start."""
    return [text(one) for one in arr(_started(call).get("argv"))]


def env(call: Call) -> dict[str, Any]:
    """Of the variables of the agent's start those that the play speaks of."""
    return obj(_started(call).get("env"))


def reached(call: Call, value: str) -> bool:
    """Return whether a text stands anywhere in what the agent was started with."""
    started = _started(call)
    texts = [*argv(call), *map(text, env(call).values()), text(started.get("stdin"))]
    return any(value in one for one in texts) or value == started.get("cwd")


def schema_reached(call: Call, schema: Any) -> bool:
    """Return whether a JSON value is in a file that a word of the agent names, or is a word
    itself.
    """
    files = obj(_started(call).get("files")).values()
    return any(one == schema for one in (*files, *map(_json, argv(call))))


def _json(word: str) -> Any:
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        return None


def _started(call: Call) -> dict[str, Any]:
    return obj(obj(call.started[0].json).get("started")) if call.started else {}


def end_written(call: Call) -> dict[str, Any]:
    """The first event of the scripted agent that ends its turn, {} for none."""
    ends = [one for one in call.writes if one.get("type") in ENDS]
    return ends[0] if ends else {}


def completed_items(call: Call) -> list[dict[str, Any]]:
    """The items that the scripted agent completed, in order."""
    return [obj(one.get("item")) for one in call.writes if one.get("type") == "item.completed"]


def model_ends(trace: Trace, calls: Calls, call: Call) -> list[ModelEnd]:
    """The answers of the model to a turn of a real agent, which is over.

    None where the play has several threads and it is not known whose they are.
    """
    before = [one.over for one in calls.earlier(call) if one.over is not None]
    first, last = before[-1] if before else call.driver, call.over
    thread = text(obj(call.driver.json).get("name"))
    alone = all(one.driver is call.driver for one in calls.calls.values())
    mine = {
        mark.body.call
        for mark in trace.marks_of(ModelCall)
        if last is not None
        and marked_before(mark, last)
        and not marked_before(mark, first)
        and (mark.body.thread == thread or alone)
    }
    return [mark.body for mark in trace.marks_of(ModelEnd) if mark.body.call in mine]


def aborted(call: Call) -> bool:
    """Return whether the signal was aborted."""
    return bool(text(obj(call.asked.json).get("abort")))


def includes(found: Any, expected: Any) -> bool:
    """Return whether a value has all that another one has: further members are no difference."""
    if isinstance(expected, dict):
        members = cast("dict[str, Any]", expected)
        return isinstance(found, dict) and all(
            key in found and includes(obj(found)[key], one) for key, one in members.items()
        )
    if isinstance(expected, list):
        one, other = arr(found), cast("list[Any]", expected)
        return len(one) == len(other) and all(map(includes, one, other))
    return bool(found == expected)
