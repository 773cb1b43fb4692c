"""Rules on the results of an SDK's calls: the buffered result, the stream, errors, the id.

They are judged by the output of the scripted agent.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Any

from harness.judge.base import Outcomes, Witness, rule
from harness.judge.rules.shared.sdk_turns import (
    SdkRule,
    completed_items,
    end_written,
    includes,
    turn_option,
    was_aborted,
)
from harness.judge.rules.shared.violations import different, root_member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.surface.sdk import Call

USAGE_COUNTS = ("input_tokens", "cached_input_tokens", "output_tokens")


def is_call(call: Call, name: str) -> bool:
    """Return whether a call is of the SDK's method `name`."""
    return obj(call.request.json).get("call") == name


def completes_turn(call: Call) -> bool:
    """Return whether the agent completes the turn, without an error event and without an abort.

    Left open: whether an error event can be a failure that is retried, and the result of a turn
    whose agent then exits with a status other than 0.
    """
    odd = call.status != 0 or any(written.get("type") == "error" for written in call.writes)
    return end_written(call).get("type") == "turn.completed" and not was_aborted(call) and not odd


def agent_messages(call: Call) -> list[dict[str, Any]]:
    """Return the agent messages that were completed."""
    return [item for item in completed_items(call) if item.get("type") == "agent_message"]


class ResultRule(SdkRule):
    """Base of rules on results of `run` whose turn was completed."""

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        """Judge a turn that gave a result."""
        if not is_call(call, "run") or not completes_turn(call) or not call.starts:
            return None
        if obj(end.json).get("over") != "result":
            return None
        return self.judge_result(call, end)

    def judge_result(self, call: Call, end: Frame) -> Outcomes:
        """Judge the result."""
        raise NotImplementedError


@rule(
    "sdk-run.resolves",
    title="run gives a result where the turn is completed",
    level=Level.MUST,
    surface="sdk",
)
class Resolves(SdkRule):
    """Judges run if the agent wrote a whole turn that was completed, without an abort.

    Left open: lines that are not events, and exit statuses other than 0.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        if not is_call(call, "run") or not completes_turn(call) or not call.starts:
            return
        if obj(end.json).get("over") == "result":
            yield Witness(call.subject, call.frames)
        else:
            expected = "result, since the turn was completed"
            yield wrong(call.subject, call.frames, root_member(end, "over"), expected)


@rule(
    "sdk-run.result-shape",
    title="The result of run has finalResponse, items and usage",
    level=Level.MUST,
    surface="sdk",
)
class ResultShape(ResultRule):
    """Judges finalResponse (a string, also with an output schema), items (an array) and usage.

    usage is an object with three numbers, or null. Left open: further members, and finalResponse
    without a message.
    """

    def judge_result(self, call: Call, end: Frame) -> Outcomes:
        result = obj(obj(end.json).get("result"))
        structured = turn_option(call, "outputSchema") is not None
        problems = (
            (
                "finalResponse",
                "a string",
                isinstance(result.get("finalResponse"), str) or not agent_messages(call),
            ),
            ("items", "an array", isinstance(result.get("items"), list)),
            ("usage", "an object with three numbers, or null", _is_usage(result)),
        )
        for name, expected, good in problems:
            if not good:
                field = root_member(end, "result", name)
                clause = "sdk-result.structured" if structured else "sdk-result.run"
                yield wrong(call.subject, call.frames, field, expected, clauses=(clause,))
                return
        yield Witness(call.subject, call.frames)


def _is_usage(result: dict[str, Any]) -> bool:
    if "usage" not in result or result["usage"] is None:
        return "usage" in result
    counts = [obj(result["usage"]).get(name) for name in USAGE_COUNTS]
    return all(isinstance(count, int | float) and not isinstance(count, bool) for count in counts)


@rule(
    "sdk-run.usage",
    title="The usage of run is that of turn.completed",
    level=Level.MUST,
    surface="sdk",
)
class UsageGiven(ResultRule):
    """Judges that run returns the three numbers of the agent's turn.completed.

    The specification leaves open when usage is null, so null is SHOULD.
    """

    def judge_result(self, call: Call, end: Frame) -> Outcomes:
        usage = {name: obj(end_written(call).get("usage")).get(name) for name in USAGE_COUNTS}
        if None in usage.values():
            return
        field = root_member(end, "result", "usage")
        if includes(field.value, usage):
            yield Witness(call.subject, call.frames)
        else:
            reason, level = "as turn.completed had it", None if field.value else Level.SHOULD
            actual: Any = field.value or 0
            frames = call.frames
            yield different(
                call.subject, frames, field, usage, value=actual, reason=reason, level=level
            )


@rule(
    "sdk-run.items",
    title="The items of run are those that were completed",
    level=Level.SHOULD,
    surface="sdk",
)
class ItemsGiven(ResultRule):
    """Judges that run returns the items of item.completed, in order.

    That these are the items follows from both clauses: SHOULD. Left open: further members of an
    item.
    """

    def judge_result(self, call: Call, end: Frame) -> Outcomes:
        field, items = root_member(end, "result", "items"), completed_items(call)
        if includes(field.value, items):
            yield Witness(call.subject, call.frames)
        else:
            reason = "as item.completed had them"
            yield different(call.subject, call.frames, field, items, reason=reason)


@rule(
    "sdk-run.final-response",
    title="finalResponse is the text of the last agent message",
    level=Level.SHOULD,
    surface="sdk",
)
class FinalResponse(ResultRule):
    """Judges that finalResponse is the text of the last agent message.

    That the last one is the final response follows from both clauses: SHOULD. Left open: a turn
    without agent message.
    """

    def judge_result(self, call: Call, end: Frame) -> Outcomes:
        messages = agent_messages(call)
        if not messages:
            return
        field, last_text = (
            root_member(end, "result", "finalResponse"),
            text(messages[-1].get("text")),
        )
        if field.value == last_text:
            yield Witness(call.subject, call.frames)
        else:
            reason = "the text of the last agent message"
            yield different(call.subject, call.frames, field, last_text, reason=reason)


@rule(
    "sdk-run.rejects",
    title="run rejects with a message where the turn fails",
    level=Level.MUST,
    surface="sdk",
)
class Rejects(SdkRule):
    """Judges run if the agent wrote turn.failed, without an abort: an error with a message.

    Left open: its class, its name and the words of the message.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        failed = end_written(call).get("type") == "turn.failed" and not was_aborted(call)
        if not is_call(call, "run") or not failed or not call.starts:
            return
        message = obj(obj(end.json).get("error")).get("message")
        if obj(end.json).get("over") == "error" and text(message):
            yield Witness(call.subject, call.frames)
        elif obj(end.json).get("over") == "error":
            field = root_member(end, "error", "message")
            yield wrong(call.subject, call.frames, field, "a text")
        else:
            expected = "error, since the turn failed"
            yield wrong(call.subject, call.frames, root_member(end, "over"), expected)


@rule(
    "sdk-streamed.events",
    title="runStreamed yields the events of the turn in their order",
    level=Level.MUST,
    surface="sdk",
)
class Streamed(SdkRule):
    """Judges the events of runStreamed against those that the agent wrote, turn.failed among them.

    Left open: errors thrown at the end, further members, events of types that the specification
    does not name, and turns that were aborted.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        if not is_call(call, "runStreamed") or was_aborted(call) or not call.starts:
            return
        if not end_written(call):
            return
        written = [written for written in call.writes if text(written.get("type")) in EVENT_TYPES]
        yielded = [
            yielded_event
            for yielded_event in call.events
            if text(_event(yielded_event).get("type")) in EVENT_TYPES
        ]
        for place, event in enumerate(written):
            if place >= len(yielded):
                expected = f"the event {text(event.get('type'))} before the end"
                yield wrong(call.subject, call.frames, root_member(end, "over"), expected)
                return
            frame = yielded[place]
            if not includes(_event(frame), event):
                field = root_member(frame, "event")
                frames = (*call.frames, frame)
                yield different(call.subject, frames, field, event, reason="as the agent wrote it")
                return
        if len(yielded) > len(written):
            field = root_member(yielded[len(written)], "event")
            frames = (*call.frames, yielded[len(written)])
            yield wrong(call.subject, frames, field, "no further event: the agent wrote no more")
        else:
            yield Witness(call.subject, (*call.frames, *yielded[-1:]))


EVENT_TYPES = (
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
    """Judges that run rejects with an AbortError if its signal was aborted before the turn's end.

    Left open: runStreamed, a signal that was aborted before the call, the message, and the fate of
    the agent's process.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        during = obj(call.request.json).get("abort") == "during" and bool(call.starts)
        if not is_call(call, "run") or not during or end_written(call):
            return
        field = root_member(end, "error", "name")
        if field.value == "AbortError":
            yield Witness(call.subject, call.frames)
        elif obj(end.json).get("over") == "error":
            yield wrong(call.subject, call.frames, field, '"AbortError"')
        else:
            expected = "error, since the signal was aborted"
            yield wrong(call.subject, call.frames, root_member(end, "over"), expected)


@rule(
    "sdk-thread.id-known",
    title="thread.id is the thread_id that the agent reported",
    level=Level.MUST,
    surface="sdk",
)
class IdKnown(SdkRule):
    """Judges that the thread's id is that of thread.started after a turn in which it was written.

    Left open: when it is set within the turn, its value before, and turns that were aborted.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        starts = [written for written in call.writes if written.get("type") == "thread.started"]
        thread_id = text(starts[0].get("thread_id")) if starts else ""
        if not thread_id or was_aborted(call) or not call.starts or not end_written(call):
            return
        if text(obj(call.driver.json).get("resume")) not in ("", thread_id):
            return
        field = root_member(end, "threadId")
        if field.value == thread_id:
            yield Witness(call.subject, call.frames)
        else:
            reason = "as in thread.started"
            yield different(call.subject, call.frames, field, thread_id, reason=reason)


@rule(
    "sdk-thread.same-id",
    title="The turns of one thread leave its id as it is",
    level=Level.SHOULD,
    surface="sdk",
)
class SameId(SdkRule):
    """Judges that the thread's id is the same after a later turn as after the previous one.

    A thread supports several turns, and its id is that of the thread: SHOULD. Left open: an agent
    that names another thread.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        earlier = [
            earlier_call
            for earlier_call in self.calls.earlier_calls(call)
            if earlier_call.end is not None
        ]
        end_before = earlier[-1].end if earlier else None
        thread_ids = {
            text(event.get("thread_id"))
            for turn_call in (*earlier, call)
            for event in turn_call.writes
            if event.get("type") == "thread.started"
        }
        if end_before is None or len(thread_ids) != 1:
            return
        field, id_before = root_member(end, "threadId"), obj(end_before.json).get("threadId")
        if field.value == id_before:
            yield Witness(call.subject, (end_before, *call.frames))
        else:
            reason = "as after the turn before"
            frames = (end_before, *call.frames)
            yield different(
                call.subject, frames, field, id_before, value=field.value or "", reason=reason
            )
