"""Rules on what the calls of an SDK give: the buffered result, the stream, the errors, the id.

They are judged by what the scripted agent wrote.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Any

from harness.judge.base import Outcomes, Witness, rule
from harness.judge.rules.shared.sdk_turns import (
    SdkRule,
    aborted,
    completed_items,
    end_written,
    includes,
    turn_option,
)
from harness.judge.rules.shared.violations import differs, whole, wrong
from harness.judge.verdict import Level
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.surface.sdk import Call

COUNTS = ("input_tokens", "cached_input_tokens", "output_tokens")


def is_call(call: Call, name: str) -> bool:
    """Return whether it is a call of that name."""
    return obj(call.asked.json).get("call") == name


def completes(call: Call) -> bool:
    """Return whether the agent completes the turn without an error event, and nobody aborts it.

    Whether an error event can be of a failure that is tried again is open, and so is what becomes
    of a turn whose agent then ends with another exit status than 0.
    """
    odd = call.status != 0 or any(one.get("type") == "error" for one in call.writes)
    return end_written(call).get("type") == "turn.completed" and not aborted(call) and not odd


def said(call: Call) -> list[dict[str, Any]]:
    """The agent messages that were completed."""
    return [one for one in completed_items(call) if one.get("type") == "agent_message"]


class Buffered(SdkRule):
    """Judges results of `run` whose turn was completed."""

    def turn(self, call: Call, over: Frame) -> Outcomes:
        """Judge a turn that gave a result."""
        if not is_call(call, "run") or not completes(call) or not call.started:
            return None
        if obj(over.json).get("over") != "result":
            return None
        return self.judged(call, over)

    def judged(self, call: Call, over: Frame) -> Outcomes:
        """Judge the result."""
        raise NotImplementedError


@rule(
    "sdk-run.resolves",
    title="run gives a result where the turn is completed",
    level=Level.MUST,
    surface="sdk",
)
class Resolves(SdkRule):
    """Judges run where the agent wrote a whole turn that was completed, and nobody aborted.

    Left open: lines that are no events, and exit statuses other than 0.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        if not is_call(call, "run") or not completes(call) or not call.started:
            return
        if obj(over.json).get("over") == "result":
            yield Witness(call.subject, call.frames)
        else:
            expected = "result, since the turn was completed"
            yield wrong(call.subject, call.frames, whole(over, "over"), expected)


@rule(
    "sdk-run.result-shape",
    title="The result of run has finalResponse, items and usage",
    level=Level.MUST,
    surface="sdk",
)
class ResultShape(Buffered):
    """Judges finalResponse (a string, also with an output schema), items (an array) and usage.

    usage is an object with three numbers, or null. Left open: further members, and finalResponse
    where there was no message.
    """

    def judged(self, call: Call, over: Frame) -> Outcomes:
        result = obj(obj(over.json).get("result"))
        structured = turn_option(call, "outputSchema") is not None
        problems = (
            (
                "finalResponse",
                "a string",
                isinstance(result.get("finalResponse"), str) or not said(call),
            ),
            ("items", "an array", isinstance(result.get("items"), list)),
            ("usage", "an object with three numbers, or null", _is_usage(result)),
        )
        for name, expected, good in problems:
            if not good:
                where = whole(over, "result", name)
                clause = "sdk-result.structured" if structured else "sdk-result.run"
                yield wrong(call.subject, call.frames, where, expected, clauses=(clause,))
                return
        yield Witness(call.subject, call.frames)


def _is_usage(result: dict[str, Any]) -> bool:
    if "usage" not in result or result["usage"] is None:
        return "usage" in result
    counts = [obj(result["usage"]).get(name) for name in COUNTS]
    return all(isinstance(one, int | float) and not isinstance(one, bool) for one in counts)


@rule(
    "sdk-run.usage",
    title="The usage of run is that of turn.completed",
    level=Level.MUST,
    surface="sdk",
)
class UsageGiven(Buffered):
    """Judges the three numbers where the agent wrote them: run gives what its events add up to.

    When usage is null is open; that it is not null then is what its reader expects: SHOULD.
    """

    def judged(self, call: Call, over: Frame) -> Outcomes:
        wanted = {name: obj(end_written(call).get("usage")).get(name) for name in COUNTS}
        if None in wanted.values():
            return
        where = whole(over, "result", "usage")
        if includes(where.value, wanted):
            yield Witness(call.subject, call.frames)
        else:
            why, level = "as turn.completed had it", None if where.value else Level.SHOULD
            found: Any = where.value or 0
            frames = call.frames
            yield differs(call.subject, frames, where, wanted, found=found, why=why, level=level)


@rule(
    "sdk-run.items",
    title="The items of run are those that were completed",
    level=Level.SHOULD,
    surface="sdk",
)
class ItemsGiven(Buffered):
    """Judges the items against those of item.completed, in their order.

    That these are the items follows from both: SHOULD. Left open: further members of an item.
    """

    def judged(self, call: Call, over: Frame) -> Outcomes:
        where, wanted = whole(over, "result", "items"), completed_items(call)
        if includes(where.value, wanted):
            yield Witness(call.subject, call.frames)
        else:
            why = "as item.completed had them"
            yield differs(call.subject, call.frames, where, wanted, why=why)


@rule(
    "sdk-run.final-response",
    title="finalResponse is the text of the last agent message",
    level=Level.SHOULD,
    surface="sdk",
)
class FinalResponse(Buffered):
    """Judges finalResponse of turns with an agent message, of which the last one counts.

    That the last one is the final response follows from both: SHOULD. Left open: a turn without.
    """

    def judged(self, call: Call, over: Frame) -> Outcomes:
        messages = said(call)
        if not messages:
            return
        where, wanted = whole(over, "result", "finalResponse"), text(messages[-1].get("text"))
        if where.value == wanted:
            yield Witness(call.subject, call.frames)
        else:
            why = "the text of the last agent message"
            yield differs(call.subject, call.frames, where, wanted, why=why)


@rule(
    "sdk-run.rejects",
    title="run rejects with a message where the turn fails",
    level=Level.MUST,
    surface="sdk",
)
class Rejects(SdkRule):
    """Judges run where the agent wrote turn.failed and nobody aborted: an error with a message.

    Left open: its class, its name and the words of the message.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        failed = end_written(call).get("type") == "turn.failed" and not aborted(call)
        if not is_call(call, "run") or not failed or not call.started:
            return
        message = obj(obj(over.json).get("error")).get("message")
        if obj(over.json).get("over") == "error" and text(message):
            yield Witness(call.subject, call.frames)
        elif obj(over.json).get("over") == "error":
            where = whole(over, "error", "message")
            yield wrong(call.subject, call.frames, where, "a text")
        else:
            expected = "error, since the turn failed"
            yield wrong(call.subject, call.frames, whole(over, "over"), expected)


@rule(
    "sdk-streamed.events",
    title="runStreamed yields the events of the turn in their order",
    level=Level.MUST,
    surface="sdk",
)
class Streamed(SdkRule):
    """Judges the events of runStreamed against those that the agent wrote, turn.failed among them.

    Whatever was thrown at the end is left open, and so are further members, events of types that
    the text does not name, and turns that were aborted.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        if not is_call(call, "runStreamed") or aborted(call) or not call.started:
            return
        if not end_written(call):
            return
        wanted = [one for one in call.writes if text(one.get("type")) in KNOWN]
        found = [one for one in call.events if text(_event(one).get("type")) in KNOWN]
        for place, event in enumerate(wanted):
            if place >= len(found):
                expected = f"the event {text(event.get('type'))} before the end"
                yield wrong(call.subject, call.frames, whole(over, "over"), expected)
                return
            frame = found[place]
            if not includes(_event(frame), event):
                where = whole(frame, "event")
                frames = (*call.frames, frame)
                yield differs(call.subject, frames, where, event, why="as the agent wrote it")
                return
        if len(found) > len(wanted):
            where = whole(found[len(wanted)], "event")
            frames = (*call.frames, found[len(wanted)])
            yield wrong(call.subject, frames, where, "no further event: the agent wrote no more")
        else:
            yield Witness(call.subject, (*call.frames, *found[-1:]))


KNOWN = (
    *("thread.started", "turn.started", "turn.completed", "turn.failed", "error"),
    *("item.started", "item.updated", "item.completed"),
)


def _event(frame: Frame) -> dict[str, Any]:
    return obj(obj(frame.json).get("event"))


@rule(
    "sdk-run.abort-error",
    title="run that is aborted rejects with an error named AbortError",
    level=Level.MUST,
    surface="sdk",
)
class AbortError(SdkRule):
    """Judges run whose signal was aborted during the turn, whose end was not written.

    Left open: runStreamed, a signal that was aborted before the call, the message, and what becomes
    of the agent's process.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        during = obj(call.asked.json).get("abort") == "during" and bool(call.started)
        if not is_call(call, "run") or not during or end_written(call):
            return
        where = whole(over, "error", "name")
        if where.value == "AbortError":
            yield Witness(call.subject, call.frames)
        elif obj(over.json).get("over") == "error":
            yield wrong(call.subject, call.frames, where, '"AbortError"')
        else:
            expected = "error, since the signal was aborted"
            yield wrong(call.subject, call.frames, whole(over, "over"), expected)


@rule(
    "sdk-thread.id-known",
    title="thread.id is the thread_id that the agent told",
    level=Level.MUST,
    surface="sdk",
)
class IdKnown(SdkRule):
    """Judges the thread's id after a turn in which thread.started was written.

    Left open: when it is set within the turn, what it is before, and turns that were aborted.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        told = [one for one in call.writes if one.get("type") == "thread.started"]
        known = text(told[0].get("thread_id")) if told else ""
        if not known or aborted(call) or not call.started or not end_written(call):
            return
        if text(obj(call.driver.json).get("resume")) not in ("", known):
            return
        where = whole(over, "threadId")
        if where.value == known:
            yield Witness(call.subject, call.frames)
        else:
            why = "as thread.started told it"
            yield differs(call.subject, call.frames, where, known, why=why)


@rule(
    "sdk-thread.same-id",
    title="The turns of one thread leave its id as it is",
    level=Level.SHOULD,
    surface="sdk",
)
class SameId(SdkRule):
    """Judges the thread's id after a later turn against that after the one before.

    A thread supports several turns, and its id is that of the thread: SHOULD. Left open: an agent
    that names another thread.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        earlier = [one for one in self.calls.earlier(call) if one.over is not None]
        before = earlier[-1].over if earlier else None
        told = {
            text(event.get("thread_id"))
            for one in (*earlier, call)
            for event in one.writes
            if event.get("type") == "thread.started"
        }
        if before is None or len(told) != 1:
            return
        where, former = whole(over, "threadId"), obj(before.json).get("threadId")
        if where.value == former:
            yield Witness(call.subject, (before, *call.frames))
        else:
            why = "as after the turn before"
            frames = (before, *call.frames)
            yield differs(call.subject, frames, where, former, found=where.value or "", why=why)
