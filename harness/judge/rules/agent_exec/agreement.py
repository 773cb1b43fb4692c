"""The rule that one agent tells the same of the same work on both of its surfaces."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections import Counter

from harness.judge.base import Outcomes, Violation, Witness, on_mark, rule
from harness.judge.rules.shared.streams import (
    StreamRule,
    asked_of,
    event,
    item_of,
    item_type,
    member,
    of_process,
)
from harness.judge.rules.shared.told_elsewhere import MESSAGE, compared, counted_words, session_told
from harness.judge.rules.shared.violations import instead
from harness.judge.verdict import Level
from harness.protocol.values import text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import ModelEnd, ProgramEnded
from harness.trace.trace import Mark

_ENDS = {"turn.completed": "completed", "turn.failed": "failed"}


@rule(
    "exec.agrees-with-session",
    title="A stream tells of the same work what the session tells",
    level=Level.SHOULD,
    surface="exec",
)
class AgreesWithSession(StreamRule):
    """Judges a turn that the same run played by the session protocol too.

    Compared are its end, the texts of its messages in their order, and how many commands, changes,
    calls and searches there were. Turns in which a model call did not go well are left alone: what
    becomes of half an answer may differ.
    """

    @on_mark(ProgramEnded)
    def on_program_ended(self, mark: Mark[ProgramEnded]) -> Outcomes:
        connection = mark.body.connection
        asked = asked_of(self.trace, connection)
        turn = self.stream.turns[-1] if self.stream.turns else None
        if asked is None or turn is None or not turn.ends:
            return
        there = session_told(self.trace, asked.turn)
        calls = of_process(self.trace, connection, ModelEnd)
        if there is None or not calls or not all(one.completed for one in calls):
            return
        subject, proof = f"turn {asked.turn} in {connection}", (turn.started, turn.ends[0])
        place = member(turn.ends[0], "type")
        if _ENDS.get(text(place.value)) != there.status:
            expected = f"an end as the session told it: {there.status}"
            yield instead(subject, proof, place, expected)
            return
        done = [one for one in self.stream.items if event(one).get("type") == "item.completed"]
        said, heard = _texts(done), [one.text for one in there.items if one.type == MESSAGE]
        counted = Counter(one.type for one in there.items if one.type in compared())
        mine = Counter(item_type(one) for one in done if item_type(one) in compared())
        if said != heard:
            expected = f"the messages that the session told: {literal(heard)}"
            yield Violation(subject, proof, expected, literal(said))
        elif mine != counted:
            expected = f"the items that the session told: {counted_words(counted)}"
            yield Violation(subject, proof, expected, counted_words(mine))
        else:
            yield Witness(subject, proof)


def _texts(items: list[Frame]) -> list[str]:
    return [text(item_of(one).get("text")) for one in items if item_type(one) == MESSAGE]
