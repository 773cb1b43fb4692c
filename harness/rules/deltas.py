"""Rules on what deltas add up to and which items they belong to.

Here: agentMessage (stated), reasoning summaries (derived), kinds. Never judged: plan deltas (the
completed plan is authoritative), raw reasoning, command output. No deltas at all is legal, and
then nothing was judged.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.rules.base import Monitor, Outcomes, Violation, Witness, on, rule
from harness.rules.subjects import DELTA_ITEMS, DELTAS, item_in, shown
from harness.rules.verdict import Level
from harness.trace.frame import Frame
from harness.trace.values import arr, obj, text

AGENT_DELTA = "item/agentMessage/delta"
SUMMARY_DELTA = "item/reasoning/summaryTextDelta"


@rule("delta.rebuilds-reply", title="Joined deltas are the reply", level=Level.MUST)
class RebuildsReply(Monitor):
    """Judges that the deltas of one agentMessage, joined, equal the text of its item/completed.

    Joined per item and since its last item/started, which carries the item as it then is. Left
    open: items without deltas, items whose start was not seen, a text that is no string.
    """

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or len(item.completed) > 1 or not item.started:
            return None
        joined, final = item.joined(AGENT_DELTA), item_in(frame).get("text")
        if joined is None or item.type != "agentMessage" or not isinstance(final, str):
            return None
        frames = tuple(x for x in (item.first_delta, item.last_delta, frame) if x is not None)
        if joined == final:
            return [Witness(item.subject, frames)]
        where = _difference(joined, final)
        actual = f"deltas {shown(joined)} (first difference at character {where})"
        return [Violation(item.subject, frames, f"deltas that join to {shown(final)}", actual)]


@rule(
    "delta.reasoning-summary",
    title="Joined summary deltas are the summary parts",
    level=Level.SHOULD,
    needs=("reasoning",),
)
class ReasoningSummary(Monitor):
    """Judges that the summary deltas of each summaryIndex, joined, equal that part of the summary.

    Derived from "summary: streamed summaries" and the index of the deltas, so SHOULD. Left open:
    parts without deltas, raw reasoning content, items whose start was not seen.
    """

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or len(item.completed) > 1 or not item.started:
            return None
        summary = item_in(frame).get("summary")
        indexes = sorted(index for method, index in item.parts if method == SUMMARY_DELTA)
        if not indexes or item.type != "reasoning" or not isinstance(summary, list):
            return None
        parts = arr(item_in(frame).get("summary"))
        frames = tuple(x for x in (item.first_delta, item.last_delta, frame) if x is not None)
        for index in indexes:
            joined = item.joined(SUMMARY_DELTA, index)
            stored = parts[index] if 0 <= index < len(parts) else None
            if joined != stored:
                expected = f"summary part {index} {shown(joined)}, as its deltas say"
                return [Violation(item.subject, frames, expected, shown(stored))]
        return [Witness(item.subject, frames)]


@rule("delta.kind-matches-item", title="Deltas fit the type of their item", level=Level.MUST)
class KindMatchesItem(Monitor):
    """Judges that a delta's method is the one for its item's type. One finding per item and method.

    Left open: items of unknown type (not started, shapes), mcpToolCall progress (payload not
    shown), deltas of methods that the text does not name.
    """

    def begin(self) -> None:
        self._judged: set[tuple[str, str, str]] = set()

    @on(*DELTAS)
    def delta(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        key = (frame.json["method"], text(params.get("turnId")), text(params.get("itemId")))
        if key in self._judged:
            return None
        item = self.conversation.item_of(frame)
        if item is None or not item.started or not item.type:
            return None
        self._judged.add(key)
        wanted = DELTA_ITEMS[key[0]]
        if item.type == wanted:
            return [Witness(item.subject, (item.started[-1], frame))]
        frames = (item.started[-1], frame)
        expected = f"deltas for an item of type {item.type}"
        return [Violation(item.subject, frames, expected, f"{key[0]}, which is for {wanted}")]


def _difference(one: str, other: str) -> int:
    for position, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return position
    return min(len(one), len(other))
