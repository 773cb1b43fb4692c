"""Rule that an agent reports the same work alike in `agent exec` and in a session."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections import Counter

from harness.judge.base import Outcomes, Violation, Witness, on_mark, rule
from harness.judge.rules.shared.process_events import (
    StreamRule,
    event,
    item_of,
    item_type,
    member,
    model_marks_of,
    turn_request_of,
)
from harness.judge.rules.shared.session_reports import (
    MESSAGE,
    compared_item_types,
    format_counts,
    session_report,
)
from harness.judge.rules.shared.violations import unexpected_member
from harness.judge.verdict import Level
from harness.protocol.values import text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import ModelEnd, ProgramEnded
from harness.trace.trace import Mark

_ENDS = {"turn.completed": "completed", "turn.failed": "failed"}


@rule(
    "exec.agrees-with-session",
    title="A stream reports the same work as the session does",
    level=Level.SHOULD,
    surface="exec",
)
class AgreesWithSession(StreamRule):
    """Judges a turn that the same run also played by the session protocol.

    It compares the end of the turn, the texts of its messages in order, and the numbers of
    commands, changes, calls and searches. Turns with a failed model call are not judged: servers
    may treat half an answer differently.
    """

    @on_mark(ProgramEnded)
    def on_program_ended(self, mark: Mark[ProgramEnded]) -> Outcomes:
        connection = mark.body.connection
        request = turn_request_of(self.trace, connection)
        turn = self.stream.turns[-1] if self.stream.turns else None
        if request is None or turn is None or not turn.ends:
            return
        report = session_report(self.trace, request.turn)
        calls = model_marks_of(self.trace, connection, ModelEnd)
        if report is None or not calls or not all(call.is_complete for call in calls):
            return
        subject, proof = f"turn {request.turn} in {connection}", (turn.start, turn.ends[0])
        place = member(turn.ends[0], "type")
        if _ENDS.get(text(place.value)) != report.status:
            expected = f"the end that the session reported: {report.status}"
            yield unexpected_member(subject, proof, place, expected)
            return
        completed_items = [
            frame for frame in self.stream.items if event(frame).get("type") == "item.completed"
        ]
        messages = _texts(completed_items)
        session_messages = [item.text for item in report.items if item.type == MESSAGE]
        session_counts = Counter(
            item.type for item in report.items if item.type in compared_item_types()
        )
        counts = Counter(
            item_type(frame)
            for frame in completed_items
            if item_type(frame) in compared_item_types()
        )
        if messages != session_messages:
            expected = f"the messages that the session reported: {literal(session_messages)}"
            yield Violation(subject, proof, expected, literal(messages))
        elif counts != session_counts:
            expected = f"the items that the session reported: {format_counts(session_counts)}"
            yield Violation(subject, proof, expected, format_counts(counts))
        else:
            yield Witness(subject, proof)


def _texts(items: list[Frame]) -> list[str]:
    return [text(item_of(item).get("text")) for item in items if item_type(item) == MESSAGE]
