"""Rule that an SDK returns what the session protocol reports for the same work."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections import Counter
from typing import Any

from harness.judge.base import Outcomes, Violation, Witness, rule
from harness.judge.rules.shared.sdk_turns import SdkRule, model_ends
from harness.judge.rules.shared.session_reports import (
    MESSAGE,
    compared_item_types,
    format_counts,
    session_report,
)
from harness.judge.rules.shared.violations import different, root_member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import CallEnd, ModelEnd, SessionReport
from harness.trace.surface.sdk import Call

# The end of a call by the end of its turn on the session.
_ENDS = {"completed": "result", "failed": "error"}


@rule(
    "sdk-run.agrees-with-session",
    title="run returns for the same work what the session reports",
    level=Level.SHOULD,
    surface="sdk",
)
class AgreesWithSession(SdkRule):
    """Judges run if the same run of the harness also played its turn by the session protocol.

    It compares whether run gave a result or failed, the texts of the messages in order, the numbers
    of commands, changes, calls and searches, and finalResponse. Not judged are turns that the
    session reported as interrupted, and those in which an answer of the model was cut off, or the
    model's server failed: the number of retries is open.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        report = session_report(self.trace, call.name) if call.name else None
        if report is None or report.status not in _ENDS or not call.starts:
            return
        ends = model_ends(self.trace, self.calls, call)
        if not ends or not all(map(_is_unambiguous, ends)):
            return
        expected_end = _ENDS[report.status]
        if obj(end.json).get("over") != expected_end:
            expected = f"{expected_end}, since the session reported that the turn {report.status}"
            yield wrong(call.subject, call.frames, root_member(end, "over"), expected)
        elif expected_end == "error":
            yield Witness(call.subject, call.frames)
        else:
            yield self._judge_result(call, end, report)

    def _judge_result(self, call: Call, end: Frame, report: SessionReport) -> Witness | Violation:
        values: list[Any] = arr(obj(obj(end.json).get("result")).get("items"))
        items = [obj(value) for value in values]
        messages = [text(item.get("text")) for item in items if item.get("type") == MESSAGE]
        session_messages = [item.text for item in report.items if item.type == MESSAGE]
        counts = Counter(
            text(item.get("type")) for item in items if item.get("type") in compared_item_types()
        )
        session_counts = Counter(
            item.type for item in report.items if item.type in compared_item_types()
        )
        final = root_member(end, "result", "finalResponse")
        if messages != session_messages:
            expected = f"the messages that the session reported: {literal(session_messages)}"
            return Violation(call.subject, call.frames, expected, literal(messages))
        if counts != session_counts:
            expected = f"the items that the session reported: {format_counts(session_counts)}"
            return Violation(call.subject, call.frames, expected, format_counts(counts))
        if session_messages and final.value != session_messages[-1]:
            reason = "the last message that the session reported"
            return different(call.subject, call.frames, final, session_messages[-1], reason=reason)
        return Witness(call.subject, call.frames)


def _is_unambiguous(end: ModelEnd) -> bool:
    """Return whether there is one way to treat an answer.

    There is one if the answer is complete, or the call itself was refused.
    """
    refused = end.outcome is CallEnd.STATUS and 400 <= end.status < 500
    return refused or end.outcome is CallEnd.COMPLETED
