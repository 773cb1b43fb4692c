"""Rules on the end of a streamed turn: failures are reported, answers fit their schema."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json
from typing import Any

from harness.judge.base import Outcome, Outcomes, Violation, Witness, on_mark, rule
from harness.judge.rules.shared.process_events import (
    StreamRule,
    event,
    item_of,
    item_type,
    member,
    model_marks_of,
    turn_request_of,
)
from harness.judge.rules.shared.violations import unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.answers import schema_violation
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.marks import ModelEnd, ProgramEnded, TurnRequested
from harness.trace.surface.agent_exec import StreamTurn
from harness.trace.trace import Mark

# The specification's examples of a failed run: rate limits, and authentication.
FAILURE_NAMES = {401: "authentication failure", 403: "authentication failure", 429: "rate limiting"}


@rule(
    "exec.failure-told",
    title="A turn whose model refused for good is not completed",
    level=Level.MUST,
    surface="exec",
)
class FailureTold(StreamRule):
    """Judges the end of a process whose last model call was refused for its key or its rate.

    The specification has these as examples of a failure. The turn must fail, or an error event must
    come.
    """

    @on_mark(ProgramEnded)
    def on_program_ended(self, mark: Mark[ProgramEnded]) -> Outcomes:
        ends = model_marks_of(self.trace, mark.body.connection, ModelEnd)
        turn = self.stream.turns[-1] if self.stream.turns else None
        if turn is None or not ends or ends[-1].status not in FAILURE_NAMES:
            return
        end_events = [*turn.ends[:1], *self.stream.fatal[:1]]
        if not end_events:
            return  # exec.turn-ends reports it.
        reason = FAILURE_NAMES[ends[-1].status]
        kind = member(end_events[0], "type")
        if kind.value == "turn.completed":
            expected = f"turn.failed or an error event after {reason} ({ends[-1].outcome_text})"
            yield unexpected_member(turn.subject, (turn.start, end_events[0]), kind, expected)
        else:
            yield Witness(turn.subject, (turn.start, end_events[0]))


@rule(
    "exec.structured-answer",
    title="With an output schema the last message is JSON text that fits it",
    level=Level.MUST,
    needs=("output-schema",),
    surface="exec",
)
class StructuredAnswer(StreamRule):
    """Judges the last agent_message of a completed turn that had an output schema.

    Judged only if the model's own answer fits: the specification leaves open how a program treats
    one that does not.
    """

    @on_mark(ProgramEnded)
    def on_program_ended(self, mark: Mark[ProgramEnded]) -> Outcomes:
        connection = mark.body.connection
        request = turn_request_of(self.trace, connection)
        turn = self.stream.turns[-1] if self.stream.turns else None
        if request is None or not request.schema or turn is None or not _is_completed(turn):
            return
        schema = _parse_schema(request)
        answers = [
            answer.text
            for end in model_marks_of(self.trace, connection, ModelEnd)
            for answer in end.texts
        ]
        if not answers or _misfit_reason(schema, answers[-1]) is not None:
            return
        messages = [
            frame
            for frame in self.stream.items
            if item_type(frame) == "agent_message" and event(frame).get("type") == "item.completed"
        ]
        if not messages:
            expected = "an agent_message with the answer"
            yield Violation(turn.subject, (turn.start, turn.ends[0]), expected, "none came")
            return
        yield self._judge_answer(turn, messages[-1], schema)

    def _judge_answer(self, turn: StreamTurn, frame: Frame, schema: dict[str, Any]) -> Outcome:
        reason = _misfit_reason(schema, text(item_of(frame).get("text")))
        if reason is None:
            return Witness(turn.subject, (frame,))
        place = member(frame, "item", "text")
        return wrong(turn.subject, (turn.start, frame), place, f"JSON text that fits: {reason}")


def _parse_schema(turn: TurnRequested) -> dict[str, Any]:
    return obj(json.loads(turn.schema))


def _is_completed(turn: StreamTurn) -> bool:
    return bool(turn.ends) and event(turn.ends[0]).get("type") == "turn.completed"


def _misfit_reason(schema: dict[str, Any], answer: str) -> str | None:
    """Return why a text is not JSON that fits a schema, None if it is."""
    try:
        value: Any = json.loads(answer)
    except (ValueError, RecursionError):
        return "it is not JSON"
    return schema_violation(schema, value) or None
