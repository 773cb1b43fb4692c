"""Rules on what deltas add up to and which items they belong to.

Here: agentMessage (stated), reasoning and command output (derived), kinds, section boundaries.
Never judged: plan deltas (the completed plan is authoritative) and the output of file changes (no
member of the item holds it). No deltas at all is legal, and then nothing was judged.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections import Counter

from harness.rules.base import Monitor, Outcomes, Violation, Witness, on, rule
from harness.rules.subjects import DELTA_ITEMS, DELTAS, item_in, shown
from harness.rules.verdict import Level
from harness.trace.frame import Frame
from harness.trace.values import arr, obj, text

AGENT_DELTA = "item/agentMessage/delta"
SUMMARY_DELTA = "item/reasoning/summaryTextDelta"
PART_ADDED = "item/reasoning/summaryPartAdded"
RAW_DELTA = "item/reasoning/textDelta"
OUTPUT_DELTA = "item/commandExecution/outputDelta"


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


class _Reasoning(Monitor):
    """The deltas of one method, joined by index, against an array of the completed item."""

    def differences(self, frame: Frame, method: str, member: str) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or len(item.completed) > 1 or not item.started:
            return None
        whole = item_in(frame).get(member)
        indexes = sorted(index for name, index in item.parts if name == method)
        if not indexes or item.type != "reasoning" or not isinstance(whole, list):
            return None
        parts = arr(item_in(frame).get(member))
        frames = tuple(x for x in (item.first_delta, item.last_delta, frame) if x is not None)
        for index in indexes:
            joined = item.joined(method, index)
            stored = parts[index] if 0 <= index < len(parts) else None
            if joined != stored:
                expected = f"{member} part {index} {shown(joined)}, as its deltas say"
                return [Violation(item.subject, frames, expected, shown(stored))]
        return [Witness(item.subject, frames)]


@rule(
    "delta.reasoning-summary",
    title="Joined summary deltas are the summary parts",
    level=Level.SHOULD,
    needs=("reasoning",),
)
class ReasoningSummary(_Reasoning):
    """Judges that the summary deltas of each summaryIndex, joined, equal that part of the summary.

    Derived from "summary: streamed summaries" and the index of the deltas, so SHOULD. Left open:
    parts without deltas, items whose start was not seen.
    """

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        return self.differences(frame, SUMMARY_DELTA, "summary")


@rule(
    "delta.reasoning-content",
    title="Joined raw deltas are the blocks of the content",
    level=Level.SHOULD,
    needs=("reasoning-raw",),
)
class ReasoningContent(_Reasoning):
    """Judges that the raw deltas of each contentIndex, joined, equal that element of the content.

    Derived from "content: raw reasoning blocks" and the index of the deltas, so SHOULD. Left open:
    blocks without deltas, items whose start was not seen.
    """

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        return self.differences(frame, RAW_DELTA, "content")


@rule(
    "delta.command-output",
    title="Joined output deltas are the output of the command",
    level=Level.SHOULD,
    needs=("command-execution",),
)
class CommandOutput(Monitor):
    """Judges that the output deltas of one commandExecution, joined, are its aggregatedOutput.

    Derived from two clauses on the same output, so SHOULD. How standard output and standard error
    are combined is not said, so only which characters there are is compared, not their order. Left
    open: commands without deltas or without aggregatedOutput, items whose start was not seen.
    """

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or len(item.completed) > 1 or not item.started:
            return None
        joined, whole = item.joined(OUTPUT_DELTA), item_in(frame).get("aggregatedOutput")
        if joined is None or item.type != "commandExecution" or not isinstance(whole, str):
            return None
        frames = tuple(x for x in (item.first_delta, item.last_delta, frame) if x is not None)
        if joined == whole or Counter(joined) == Counter(whole):
            return [Witness(item.subject, frames)]
        expected = f"aggregatedOutput {shown(joined)}, as the deltas say ({len(joined)} characters)"
        actual = f"{shown(whole)} ({len(whole)} characters)"
        return [Violation(item.subject, frames, expected, actual)]


@rule(
    "delta.summary-part-announced",
    title="A boundary stands between two sections of a summary",
    level=Level.SHOULD,
    needs=("reasoning",),
)
class SummaryPartAnnounced(Monitor):
    """Judges that item/reasoning/summaryPartAdded comes where the summaryIndex of deltas changes.

    The text calls it a section boundary. That a section is one summaryIndex follows from the
    summary being an array of texts, so SHOULD. Which of the two indexes the boundary carries is
    not said, nor whether there is one before the first section: both are left open, and so are
    items whose start was not seen.
    """

    once = True

    def begin(self) -> None:
        self._last: dict[tuple[str, str], Frame] = {}
        self._boundary: dict[tuple[str, str], Frame] = {}

    @on("item/started", "item/completed")
    def whole(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        key = (text(params.get("turnId")), text(item_in(frame).get("id")))
        self._last.pop(key, None)
        self._boundary.pop(key, None)

    @on(PART_ADDED)
    def boundary(self, frame: Frame) -> Outcomes:
        self._boundary[_item_key(frame)] = frame

    @on(SUMMARY_DELTA)
    def delta(self, frame: Frame) -> Outcomes:
        key, item = _item_key(frame), self.conversation.item_of(frame)
        last, self._last[key] = self._last.get(key), frame
        boundary = self._boundary.pop(key, None)
        if last is None or item is None or not item.started:
            return None
        before, now = _index(last), _index(frame)
        if before == now:
            return None
        if boundary is not None:
            return [Witness(item.subject, (last, boundary, frame))]
        expected = f"summaryPartAdded between the deltas of part {before} and of part {now}"
        return [Violation(item.subject, (last, frame), expected, "none came")]


# The requirement that says which items a delta is for.
_SAYS_OF = {
    AGENT_DELTA: (),
    "item/plan/delta": ("event.plan-delta-when",),
    SUMMARY_DELTA: ("event.reasoning-summary-when",),
    PART_ADDED: (),
    RAW_DELTA: ("event.reasoning-text-when",),
    OUTPUT_DELTA: (),
    "item/fileChange/outputDelta": ("event.file-change-output",),
}


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
        actual, clauses = f"{key[0]}, which is for {wanted}", ("item.deltas", *_SAYS_OF[key[0]])
        return [Violation(item.subject, frames, expected, actual, clauses=clauses)]


def _item_key(frame: Frame) -> tuple[str, str]:
    params = obj(frame.params)
    return text(params.get("turnId")), text(params.get("itemId"))


def _index(frame: Frame) -> object:
    return obj(frame.params).get("summaryIndex")


def _difference(one: str, other: str) -> int:
    for position, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return position
    return min(len(one), len(other))
