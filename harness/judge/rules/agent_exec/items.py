"""Rules on the events of one item: started, updated, completed.

The text names the events and gives no item an id, so only items that have one can be followed.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Outcomes, Witness, listen, rule
from harness.judge.rules.shared.streams import StreamRule, event, item_of, item_subject, member
from harness.judge.rules.shared.violations import instead
from harness.judge.verdict import Level
from harness.trace.frame import Frame
from harness.trace.surface.agent_exec import OF_ITEMS


@rule(
    "exec.item-life",
    title="An item is started first, completed last, and each once",
    level=Level.SHOULD,
    surface="exec",
)
class ItemLife(StreamRule):
    """Judges items that have an id, a string; others cannot be followed.

    An item need not be started or updated at all. That it keeps its type is asked too.
    """

    def begin(self) -> None:
        self.seen: dict[str, list[Frame]] = {}

    @listen(*(("event", kind) for kind in OF_ITEMS))
    def on_item(self, frame: Frame) -> Outcomes:
        named = item_of(frame).get("id")
        if not isinstance(named, str) or not named:
            return
        before = self.seen.setdefault(named, [])
        before.append(frame)
        kind = event(frame).get("type")
        earlier = [event(one).get("type") for one in before[:-1]]
        subject = item_subject(self.stream, frame)
        proof = (*before[:-1][-1:], frame)
        if "item.completed" in earlier:
            expected = f"no event of {named} behind its item.completed"
            yield instead(subject, proof, member(frame, "type"), expected)
        elif kind == "item.started" and earlier:
            expected = f"item.started of {named} once, before its other events"
            yield instead(subject, proof, member(frame, "type"), expected)
        elif earlier and item_of(before[0]).get("type") != item_of(frame).get("type"):
            place = member(frame, "item", "type")
            yield instead(subject, (before[0], frame), place, f"the type that {named} began with")
        elif kind == "item.completed":
            yield Witness(subject, (before[0], frame))
