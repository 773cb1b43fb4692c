"""Rules on the end of a streamed turn: failures are reported, answers fit their schema."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json
from typing import Any

from harness.judge.base import Outcome, Outcomes, Violation, Witness, on_mark, rule
from harness.judge.rules.shared.streams import (
    StreamRule,
    asked_of,
    event,
    item_of,
    item_type,
    member,
    of_process,
)
from harness.judge.rules.shared.violations import instead, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.answers import unmet
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.marks import ModelEnd, ProgramEnded, TurnAsked
from harness.trace.surface.agent_exec import StreamTurn
from harness.trace.trace import Mark

# The text's examples of what makes a run fail: rate limits, and authentication.
FAILURES = {401: "authentication failure", 403: "authentication failure", 429: "rate limiting"}


@rule(
    "exec.failure-told",
    title="A turn whose model refused for good is not completed",
    level=Level.MUST,
    surface="exec",
)
class FailureTold(StreamRule):
    """Judges the end of a process whose last model call was refused: its key, or its rate.

    These are the text's own examples of a failure. The turn fails, or the error is fatal.
    """

    @on_mark(ProgramEnded)
    def on_program_ended(self, mark: Mark[ProgramEnded]) -> Outcomes:
        ends = of_process(self.trace, mark.body.connection, ModelEnd)
        turn = self.stream.turns[-1] if self.stream.turns else None
        if turn is None or not ends or ends[-1].status not in FAILURES:
            return
        told = [*turn.ends[:1], *self.stream.fatal[:1]]
        if not told:
            return  # exec.turn-ends tells.
        why = FAILURES[ends[-1].status]
        kind = member(told[0], "type")
        if kind.value == "turn.completed":
            expected = f"turn.failed or an error event after {why} ({ends[-1].told})"
            yield instead(turn.subject, (turn.started, told[0]), kind, expected)
        else:
            yield Witness(turn.subject, (turn.started, told[0]))


@rule(
    "exec.structured-answer",
    title="With an output schema the last message is JSON text that fits it",
    level=Level.MUST,
    needs=("output-schema",),
    surface="exec",
)
class StructuredAnswer(StreamRule):
    """Judges the last agent_message of a completed turn that was given a schema.

    Only where the model said what fits: what a program does with an answer that does not fit is
    open.
    """

    @on_mark(ProgramEnded)
    def on_program_ended(self, mark: Mark[ProgramEnded]) -> Outcomes:
        connection = mark.body.connection
        asked = asked_of(self.trace, connection)
        turn = self.stream.turns[-1] if self.stream.turns else None
        if asked is None or not asked.schema or turn is None or not _completed(turn):
            return
        schema = _schema(asked)
        said = [
            one.text for end in of_process(self.trace, connection, ModelEnd) for one in end.texts
        ]
        if not said or _misfit(schema, said[-1]) is not None:
            return
        messages = [
            one
            for one in self.stream.items
            if item_type(one) == "agent_message" and event(one).get("type") == "item.completed"
        ]
        if not messages:
            expected = "an agent_message with the answer"
            yield Violation(turn.subject, (turn.started, turn.ends[0]), expected, "none came")
            return
        yield self._judged(turn, messages[-1], schema)

    def _judged(self, turn: StreamTurn, frame: Frame, schema: dict[str, Any]) -> Outcome:
        why = _misfit(schema, text(item_of(frame).get("text")))
        if why is None:
            return Witness(turn.subject, (frame,))
        place = member(frame, "item", "text")
        return wrong(turn.subject, (turn.started, frame), place, f"JSON text that fits: {why}")


def _schema(asked: TurnAsked) -> dict[str, Any]:
    return obj(json.loads(asked.schema))


def _completed(turn: StreamTurn) -> bool:
    return bool(turn.ends) and event(turn.ends[0]).get("type") == "turn.completed"


def _misfit(schema: dict[str, Any], said: str) -> str | None:
    """Return why a text is not JSON that fits a schema, None if it is."""
    try:
        value: Any = json.loads(said)
    except (ValueError, RecursionError):
        return "it is no JSON"
    return unmet(schema, value) or None
