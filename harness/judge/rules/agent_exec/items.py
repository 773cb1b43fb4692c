"""Rules on the events of one item: started, updated, completed.

The specification gives items no id, so only items that have one can be tracked.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Outcomes, Witness, listen, rule
from harness.judge.rules.shared.process_events import (
    StreamRule,
    event,
    item_of,
    item_subject,
    member,
)
from harness.judge.rules.shared.violations import unexpected_member
from harness.judge.verdict import Level
from harness.trace.frame import Frame
from harness.trace.surface.agent_exec import ITEM_EVENTS


@rule(
    "exec.item-life",
    title="An item is started first, completed last, and each once",
    level=Level.SHOULD,
    surface="exec",
)
class ItemLife(StreamRule):
    """Judges the order of the events of each item that has a string as its id.

    Other items cannot be tracked. An item need not be started or updated at all. It must also keep
    its type.
    """

    def begin(self) -> None:
        self.frames_by_id: dict[str, list[Frame]] = {}

    @listen(*(("event", kind) for kind in ITEM_EVENTS))
    def on_item(self, frame: Frame) -> Outcomes:
        item_id = item_of(frame).get("id")
        if not isinstance(item_id, str) or not item_id:
            return
        item_frames = self.frames_by_id.setdefault(item_id, [])
        item_frames.append(frame)
        kind = event(frame).get("type")
        earlier = [event(earlier_frame).get("type") for earlier_frame in item_frames[:-1]]
        subject = item_subject(self.stream, frame)
        proof = (*item_frames[:-1][-1:], frame)
        if "item.completed" in earlier:
            expected = f"no event of {item_id} after its item.completed"
            yield unexpected_member(subject, proof, member(frame, "type"), expected)
        elif kind == "item.started" and earlier:
            expected = f"item.started of {item_id} once, before its other events"
            yield unexpected_member(subject, proof, member(frame, "type"), expected)
        elif earlier and item_of(item_frames[0]).get("type") != item_of(frame).get("type"):
            place = member(frame, "item", "type")
            yield unexpected_member(
                subject, (item_frames[0], frame), place, f"the type that {item_id} began with"
            )
        elif kind == "item.completed":
            yield Witness(subject, (item_frames[0], frame))
