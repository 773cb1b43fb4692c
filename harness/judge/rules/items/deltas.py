"""Rules on deltas: the text that they join to, and the items that they belong to.

Never judged: plan deltas (the completed plan is authoritative) and the output of file changes (no
member of the item has it). An item without deltas is legal and gives no witness.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections import Counter
from dataclasses import replace
from typing import Final

from harness.judge.base import Monitor, Outcomes, Violation, Witness, on, on_sent, rule
from harness.judge.rules.shared.view_queries import DELTA_ITEMS, DELTAS, item_in, turn_in
from harness.judge.rules.shared.violations import Member, absent, differs, member
from harness.judge.verdict import Level
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame
from harness.trace.order import came_before, frames_between
from harness.trace.trace import Trace
from harness.trace.views import ItemView

AGENT_DELTA = "item/agentMessage/delta"
SUMMARY_DELTA = "item/reasoning/summaryTextDelta"
PART_ADDED = "item/reasoning/summaryPartAdded"
RAW_DELTA = "item/reasoning/textDelta"
OUTPUT_DELTA = "item/commandExecution/outputDelta"
# A server says in so many characters at most that it cut a text.
MAX_MARK_CHARACTERS: Final = 200


# An output of this length or more may be cut wherever a server likes.
LARGE = 1000
# What shows that a turn went on after an item, or how it ended.
_NEXT = ("item/started", "item/completed", *DELTAS, "turn/completed")

# The member that says which part of its item a delta is for.
_INDEXES = {SUMMARY_DELTA: "summaryIndex", RAW_DELTA: "contentIndex"}


def paired(words: str) -> str:
    """With the halves of each surrogate pair put together.

    A server may cut its deltas at any UTF-16 unit; joined they are right again.
    """
    if words.isascii():
        return words
    return words.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def joined_text(item: ItemView, method: str, index: int = 0) -> str | None:
    """The deltas of one method and index as one text, None where there were none."""
    joined = item.joined(method, index)
    return None if joined is None else paired(joined)


@rule("delta.rebuilds-reply", title="Joined deltas are the reply", level=Level.MUST)
class RebuildsReply(Monitor):
    """Judges that the deltas of one agentMessage, joined, equal the text of its item/completed.

    Joined per item and since its last item/started, which carries the item as it then is. SHOULD
    where the item was cut off: its turn was interrupted or failed with it, an error of the turn was
    told while it streamed, or the turn was steered; what an item that was cut off holds is not
    said. Left open: items without deltas, items whose start was not seen, a text that is no string.
    """

    def begin(self) -> None:
        self._steered: set[str] = set()
        self._found: dict[str, Violation] = {}

    @on_sent("turn/steer")
    def on_turn_steer_sent(self, frame: Frame) -> Outcomes:
        self._steered.add(text(obj(frame.params).get("expectedTurnId")))
        return None

    @on(*_NEXT)
    def on_next(self, frame: Frame) -> Outcomes:
        """Judge the item before, which may have been the last of its turn."""
        # Most messages are deltas, and most items are right.
        if not self._found and frame.method != "item/completed":
            return None
        return self._went_on(frame)

    def _went_on(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        found = self._found.pop(turn.key, None) if turn is not None else None
        if turn is not None and found is not None:
            ended = frame.method == "turn/completed"
            cut = ended and text(turn_in(frame).get("status")) in ("interrupted", "failed")
            yield replace(found, level=Level.SHOULD) if cut else found
        if frame.method == "item/completed":
            yield from self._completed(frame) or ()

    def finish(self) -> Outcomes:
        yield from self._found.values()

    def _completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or len(item.completed) > 1 or not item.started:
            return
        joined, final = joined_text(item, AGENT_DELTA), item_in(frame).get("text")
        if joined is None or item.type != "agentMessage" or not isinstance(final, str):
            return
        frames = tuple(x for x in (item.first_delta, item.last_delta, frame) if x is not None)
        if joined == paired(final):
            yield Witness(item.subject, frames)
            return
        where = member(frame, "item", "text")
        found = _not_joined(self.trace, item, frames, where, AGENT_DELTA, 0, joined)
        if self._cut_off(item):
            yield replace(found, level=Level.SHOULD)
        else:
            self._found[item.turn.key] = found

    def _cut_off(self, item: ItemView) -> bool:
        turn = item.turn
        failed = any(came_before(item.started[-1], error) for error in turn.errors)
        return failed or bool(turn.interrupts) or turn.id in self._steered


class _Reasoning(Monitor):
    """The deltas of one method, joined by index, against an array of the completed item."""

    def differences(self, frame: Frame, method: str, key: str) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or len(item.completed) > 1 or not item.started:
            return None
        whole = item_in(frame).get(key)
        indexes = sorted(index for name, index in item.parts if name == method)
        if not indexes or item.type != "reasoning" or not isinstance(whole, list):
            return None
        parts = arr(item_in(frame).get(key))
        frames = tuple(x for x in (item.first_delta, item.last_delta, frame) if x is not None)
        # Where the numbers do not begin at 0, or have gaps, only their order says which part is
        # meant (item.reasoning-indexes is open).
        if indexes != list(range(len(indexes))) and _in_order(
            [joined_text(item, method, index) for index in indexes], parts
        ):
            return [Witness(item.subject, frames)]
        for index in indexes:
            joined = joined_text(item, method, index)
            stored = parts[index] if 0 <= index < len(parts) else None
            if joined != (paired(stored) if isinstance(stored, str) else stored):
                where = member(frame, "item", key, index)
                return [_not_joined(self.trace, item, frames, where, method, index, joined)]
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
    parts without deltas, items whose start was not seen, and at which number the index begins:
    where it is not 0, or has gaps, only the order of the parts is compared.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
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
    blocks without deltas, items whose start was not seen, and at which number the index begins.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
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
    are combined is not said, so only which characters there are is compared, not their order, nor
    how a terminal ends its lines. Left open: commands without deltas or without aggregatedOutput,
    items whose start was not seen, outputs of 1000 characters or more, which may be cut anywhere,
    and shorter ones that were cut at the beginning, the end, or once between them, with a mark or
    without.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or len(item.completed) > 1 or not item.started:
            return None
        joined, whole = joined_text(item, OUTPUT_DELTA), item_in(frame).get("aggregatedOutput")
        if joined is None or item.type != "commandExecution" or not isinstance(whole, str):
            return None
        frames = tuple(x for x in (item.first_delta, item.last_delta, frame) if x is not None)
        if joined == whole or _characters(joined) == _characters(whole):
            return [Witness(item.subject, frames)]
        if _is_cut(joined, whole) or max(len(joined), len(whole)) >= LARGE:
            return None
        where = member(frame, "item", "aggregatedOutput")
        return [_not_joined(self.trace, item, frames, where, OUTPUT_DELTA, 0, joined)]


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
        self._last: dict[tuple[str, str, str], Frame] = {}
        self._boundary: dict[tuple[str, str, str], Frame] = {}

    @on("item/started", "item/completed")
    def on_item(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        where = text(params.get("threadId")), text(params.get("turnId"))
        key = (*where, text(item_in(frame).get("id")))
        self._last.pop(key, None)
        self._boundary.pop(key, None)

    @on(PART_ADDED)
    def on_part_added(self, frame: Frame) -> Outcomes:
        self._boundary[_item_key(frame)] = frame

    @on(SUMMARY_DELTA)
    def on_summary_delta(self, frame: Frame) -> Outcomes:
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
        expected = f"{PART_ADDED} between these two deltas of {item.subject}"
        indexes = (member(last, "summaryIndex"), member(frame, "summaryIndex"))
        return [absent(item.subject, (last, frame), expected, "none came", *indexes)]


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
        self._judged: set[tuple[str, str, str, str]] = set()

    @on(*DELTAS)
    def on_delta(self, frame: Frame) -> Outcomes:
        key = (frame.json["method"], *_item_key(frame))
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
        began, clauses = (
            member(item.started[-1], "item", "type"),
            ("item.deltas", *_SAYS_OF[key[0]]),
        )
        expected, actual = f"deltas for {item.subject}", f"{key[0]}, which is for {wanted}"
        found = absent(item.subject, frames, expected, actual, began, clauses=clauses)
        return [replace(found, places=(*found.places, member(frame, "itemId").place))]


def _in_order(joined: list[str | None], parts: list[object]) -> bool:
    """Return whether these texts are among the parts, in their order."""
    left = iter(parts)
    return all(any(part == text for part in left) for text in joined)


def _is_cut(joined: str, whole: str) -> bool:
    """Return whether `whole` is the beginning of a text, its end, or both, with a mark for what is
    cut.
    """
    head = _shared(joined, whole)
    kept = head + _shared(joined[head:][::-1], whole[head:][::-1])
    return kept > 0 and len(joined) > len(whole) and len(whole) - kept <= MAX_MARK_CHARACTERS


def _shared(one: str, other: str) -> int:
    """Return the number of characters that two texts share at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def _characters(output: str) -> Counter[str]:
    return Counter(paired(output).replace("\r\n", "\n"))


def _item_key(frame: Frame) -> tuple[str, str, str]:
    params = obj(frame.params)
    turn = text(params.get("threadId")), text(params.get("turnId"))
    return (*turn, text(params.get("itemId")))


def _index(frame: Frame) -> object:
    return obj(frame.params).get("summaryIndex")


def _not_joined(
    trace: Trace,
    item: ItemView,
    frames: tuple[Frame, ...],
    where: Member,
    method: str,
    index: int,
    joined: str | None,
) -> Violation:
    """A text that is not what its deltas join to; the delta that differs first is shown too."""
    why = f"what the deltas ({method}) of {item.subject} join to"
    found = differs(item.subject, frames, where, joined, why=why)
    offset, key = found.places[0].offset, (item.turn.thread_id, item.turn.id, item.id)
    for frame in frames_between(trace, item.started[-1], where.frame):
        params = obj(frame.params)
        if frame.method != method or _item_key(frame) != key:
            continue
        if params.get(_INDEXES.get(method, ""), index) != index:
            continue
        delta = text(params.get("delta"))
        if offset < len(delta):
            place = replace(member(frame, "delta").place, offset=offset)
            return replace(found, places=(*found.places, place))
        offset -= len(delta)
    return found
