"""The rule that an SDK gives of a turn what the session protocol told of the same work."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections import Counter
from typing import Any

from harness.judge.base import Outcomes, Violation, Witness, rule
from harness.judge.rules.shared.sdk_turns import SdkRule, model_ends
from harness.judge.rules.shared.told_elsewhere import MESSAGE, compared, counted_words, session_told
from harness.judge.rules.shared.violations import differs, whole, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import CallEnd, ModelEnd, ToldBySession
from harness.trace.surface.sdk import Call

# The end of a call by the end of its turn on the session.
_ENDS = {"completed": "result", "failed": "error"}


@rule(
    "sdk-run.agrees-with-session",
    title="run gives of the same work what the session tells",
    level=Level.SHOULD,
    surface="sdk",
)
class AgreesWithSession(SdkRule):
    """Judges run where the same run of the harness played its turn by the session protocol too.

    Compared are whether it gave a result or failed, the texts of the messages in their order, how
    many commands, changes, calls and searches there were, and finalResponse. Of turns that the
    session told to be interrupted, and of turns in which an answer of the model was cut off, or the
    model's server failed, nothing is asked: how often is tried again is open.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        there = session_told(self.trace, call.name) if call.name else None
        if there is None or there.status not in _ENDS or not call.started:
            return
        ends = model_ends(self.trace, self.calls, call)
        if not ends or not all(map(_clear, ends)):
            return
        wanted = _ENDS[there.status]
        if obj(over.json).get("over") != wanted:
            expected = f"{wanted}, since the session told that the turn {there.status}"
            yield wrong(call.subject, call.frames, whole(over, "over"), expected)
        elif wanted == "error":
            yield Witness(call.subject, call.frames)
        else:
            yield self._result(call, over, there)

    def _result(self, call: Call, over: Frame, there: ToldBySession) -> Witness | Violation:
        given: list[Any] = arr(obj(obj(over.json).get("result")).get("items"))
        items = [obj(one) for one in given]
        said = [text(one.get("text")) for one in items if one.get("type") == MESSAGE]
        heard = [one.text for one in there.items if one.type == MESSAGE]
        mine = Counter(text(one.get("type")) for one in items if one.get("type") in compared())
        counted = Counter(one.type for one in there.items if one.type in compared())
        final = whole(over, "result", "finalResponse")
        if said != heard:
            expected = f"the messages that the session told: {literal(heard)}"
            return Violation(call.subject, call.frames, expected, literal(said))
        if mine != counted:
            expected = f"the items that the session told: {counted_words(counted)}"
            return Violation(call.subject, call.frames, expected, counted_words(mine))
        if heard and final.value != heard[-1]:
            why = "the last message that the session told"
            return differs(call.subject, call.frames, final, heard[-1], why=why)
        return Witness(call.subject, call.frames)


def _clear(end: ModelEnd) -> bool:
    """Return whether there is one way to take an answer.

    There is one if the answer is whole, or the call itself was refused.
    """
    refused = end.outcome is CallEnd.STATUS and 400 <= end.status < 500
    return refused or end.outcome is CallEnd.COMPLETED
