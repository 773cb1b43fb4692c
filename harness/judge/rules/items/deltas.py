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
from harness.judge.rules.shared.violations import Member, absent, different, member
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
# The maximal length of a server's mark for a truncated text.
MAX_MARK_CHARACTERS: Final = 200


# A server may cut an output of this length or more anywhere.
LARGE_OUTPUT_CHARACTERS = 1000
# Events that show that a turn continued after an item, or how it ended.
_NEXT_EVENTS = ("item/started", "item/completed", *DELTAS, "turn/completed")

# The member that names the part of its item that a delta is for.
_INDEX_PARAMS = {SUMMARY_DELTA: "summaryIndex", RAW_DELTA: "contentIndex"}


def join_surrogates(words: str) -> str:
    """Return a text with the halves of each surrogate pair joined.

    A server may cut its deltas at any UTF-16 unit; joined they are right again.
    """
    if words.isascii():
        return words
    return words.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def joined_text(item: ItemView, method: str, index: int = 0) -> str | None:
    """Return the deltas of one method and index as one text, None if there are none."""
    joined = item.joined_deltas(method, index)
    return None if joined is None else join_surrogates(joined)


@rule("delta.rebuilds-reply", title="Joined deltas are the reply", level=Level.MUST)
class RebuildsReply(Monitor):
    """Judges that the deltas of one agentMessage, joined, equal the text of its item/completed.

    Only deltas since its last item/started count, which carries the item as it then is. SHOULD if
    the item may have been cut off, since the content of such an item is not specified: its turn was
    interrupted or failed with it, an error came while it streamed, or the turn was steered. An item
    that streamed on after the last error was not cut off there, unless its text is a beginning of
    the deltas. Left open: items without deltas, items whose start was not seen, a text that is not
    a string.
    """

    def begin(self) -> None:
        self._steered: set[str] = set()
        self._held: dict[str, Violation] = {}

    @on_sent("turn/steer")
    def on_turn_steer_sent(self, frame: Frame) -> Outcomes:
        self._steered.add(text(obj(frame.params).get("expectedTurnId")))
        return None

    @on(*_NEXT_EVENTS)
    def on_next(self, frame: Frame) -> Outcomes:
        """Judge the held violation of the turn, now that its next event is known, and a new end."""
        # A shortcut: most messages are deltas, and most items are right.
        if not self._held and frame.method != "item/completed":
            return None
        return self._judge_next(frame)

    def _judge_next(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        violation = self._held.pop(turn.key, None) if turn is not None else None
        if turn is not None and violation is not None:
            is_turn_end = frame.method == "turn/completed"
            is_cut_off = is_turn_end and text(turn_in(frame).get("status")) in (
                "interrupted",
                "failed",
            )
            yield replace(violation, level=Level.SHOULD) if is_cut_off else violation
        if frame.method == "item/completed":
            yield from self._judge_completed(frame) or ()

    def finish(self) -> Outcomes:
        yield from self._held.values()

    def _judge_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or len(item.completions) > 1 or not item.starts:
            return
        joined, final = joined_text(item, AGENT_DELTA), item_in(frame).get("text")
        if joined is None or item.type != "agentMessage" or not isinstance(final, str):
            return
        frames = tuple(
            shown_frame
            for shown_frame in (item.first_delta, item.last_delta, frame)
            if shown_frame is not None
        )
        if joined == join_surrogates(final):
            yield Witness(item.subject, frames)
            return
        field = member(frame, "item", "text")
        violation = _join_violation(self.trace, item, frames, field, AGENT_DELTA, 0, joined)
        if self._is_cut_off(item, joined, final):
            yield replace(violation, level=Level.SHOULD)
        else:
            self._held[item.turn.key] = violation

    def _is_cut_off(self, item: ItemView, joined: str, final: str) -> bool:
        turn, last = item.turn, item.last_delta
        errors = [error for error in turn.errors if came_before(item.starts[-1], error)]
        streamed_on = last is not None and all(came_before(error, last) for error in errors)
        failed = bool(errors) and (not streamed_on or joined.startswith(join_surrogates(final)))
        return failed or bool(turn.interrupts) or turn.id in self._steered


class _ReasoningRule(Monitor):
    """Base of rules that compare the joined deltas of a method with an array of the item."""

    def judge_parts(self, frame: Frame, method: str, key: str) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or len(item.completions) > 1 or not item.starts:
            return None
        value = item_in(frame).get(key)
        indexes = sorted(index for name, index in item.parts if name == method)
        if not indexes or item.type != "reasoning" or not isinstance(value, list):
            return None
        parts = arr(item_in(frame).get(key))
        frames = tuple(
            shown_frame
            for shown_frame in (item.first_delta, item.last_delta, frame)
            if shown_frame is not None
        )
        # If the indexes do not begin at 0, or have gaps, only their order shows which part is
        # meant (item.reasoning-indexes is open).
        if indexes != list(range(len(indexes))) and _in_order(
            [joined_text(item, method, index) for index in indexes], parts
        ):
            return [Witness(item.subject, frames)]
        for index in indexes:
            joined = joined_text(item, method, index)
            stored = parts[index] if 0 <= index < len(parts) else None
            if joined != (join_surrogates(stored) if isinstance(stored, str) else stored):
                field = member(frame, "item", key, index)
                return [_join_violation(self.trace, item, frames, field, method, index, joined)]
        return [Witness(item.subject, frames)]


@rule(
    "delta.reasoning-summary",
    title="Joined summary deltas are the summary parts",
    level=Level.SHOULD,
    needs=("reasoning",),
)
class ReasoningSummary(_ReasoningRule):
    """Judges that the summary deltas of each summaryIndex, joined, equal that part of the summary.

    Derived from "summary: streamed summaries" and the index of the deltas, so SHOULD. Left open:
    parts without deltas, items whose start was not seen, and the first index: if it is not 0, or
    there are gaps, only the order of the parts is compared.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        return self.judge_parts(frame, SUMMARY_DELTA, "summary")


@rule(
    "delta.reasoning-content",
    title="Joined raw deltas are the blocks of the content",
    level=Level.SHOULD,
    needs=("reasoning-raw",),
)
class ReasoningContent(_ReasoningRule):
    """Judges that the raw deltas of each contentIndex, joined, equal that element of the content.

    Derived from "content: raw reasoning blocks" and the index of the deltas, so SHOULD. Left open:
    blocks without deltas, items whose start was not seen, and the first index, as for
    delta.reasoning-summary.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        return self.judge_parts(frame, RAW_DELTA, "content")


@rule(
    "delta.command-output",
    title="Joined output deltas are the output of the command",
    level=Level.SHOULD,
    needs=("command-execution",),
)
class CommandOutput(Monitor):
    """Judges that the output deltas of one commandExecution, joined, are its aggregatedOutput.

    Derived from two clauses on the same output, so SHOULD. The specification does not say how
    standard output and standard error are combined, so only the characters are compared, not their
    order, nor a terminal's line endings. Left open: commands without deltas or without
    aggregatedOutput, items whose start was not seen, outputs of 1000 characters or more, which may
    be cut anywhere, and shorter ones that were cut at the beginning, at the end, or once in
    between, with or without a mark.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or len(item.completions) > 1 or not item.starts:
            return None
        joined, output = joined_text(item, OUTPUT_DELTA), item_in(frame).get("aggregatedOutput")
        if joined is None or item.type != "commandExecution" or not isinstance(output, str):
            return None
        frames = tuple(
            shown_frame
            for shown_frame in (item.first_delta, item.last_delta, frame)
            if shown_frame is not None
        )
        if joined == output or _characters(joined) == _characters(output):
            return [Witness(item.subject, frames)]
        if _is_cut(joined, output) or max(len(joined), len(output)) >= LARGE_OUTPUT_CHARACTERS:
            return None
        field = member(frame, "item", "aggregatedOutput")
        return [_join_violation(self.trace, item, frames, field, OUTPUT_DELTA, 0, joined)]


@rule(
    "delta.summary-part-announced",
    title="A boundary stands between two sections of a summary",
    level=Level.SHOULD,
    needs=("reasoning",),
)
class SummaryPartAnnounced(Monitor):
    """Judges that item/reasoning/summaryPartAdded comes when the summaryIndex of deltas changes.

    The specification calls it a section boundary. That a section is one summaryIndex follows from
    the summary being an array of texts, so SHOULD. Left open, as in the specification: which of the
    two indexes the boundary carries, whether there is one before the first section, and items whose
    start was not seen.
    """

    once = True

    def begin(self) -> None:
        self._last: dict[tuple[str, str, str], Frame] = {}
        self._boundary: dict[tuple[str, str, str], Frame] = {}

    @on("item/started", "item/completed")
    def on_item(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        turn_key = text(params.get("threadId")), text(params.get("turnId"))
        key = (*turn_key, text(item_in(frame).get("id")))
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
        if last is None or item is None or not item.starts:
            return None
        last_index, index = _index(last), _index(frame)
        if last_index == index:
            return None
        if boundary is not None:
            return [Witness(item.subject, (last, boundary, frame))]
        expected = f"{PART_ADDED} between these two deltas of {item.subject}"
        indexes = (member(last, "summaryIndex"), member(frame, "summaryIndex"))
        return [absent(item.subject, (last, frame), expected, "none came", *indexes)]


# The requirement that says which items have a delta.
_CLAUSES = {
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
    """Judges that a delta's method fits its item's type. One violation per item and method.

    Left open: items of unknown type (not started, shapes), mcpToolCall progress (payload not
    shown), deltas of methods that the specification does not name.
    """

    def begin(self) -> None:
        self._judged: set[tuple[str, str, str, str]] = set()

    @on(*DELTAS)
    def on_delta(self, frame: Frame) -> Outcomes:
        key = (frame.json["method"], *_item_key(frame))
        if key in self._judged:
            return None
        item = self.conversation.item_of(frame)
        if item is None or not item.starts or not item.type:
            return None
        self._judged.add(key)
        expected_type = DELTA_ITEMS[key[0]]
        if item.type == expected_type:
            return [Witness(item.subject, (item.starts[-1], frame))]
        frames = (item.starts[-1], frame)
        type_member = member(item.starts[-1], "item", "type")
        clauses = ("item.deltas", *_CLAUSES[key[0]])
        expected, actual = f"deltas for {item.subject}", f"{key[0]}, which is for {expected_type}"
        violation = absent(item.subject, frames, expected, actual, type_member, clauses=clauses)
        return [replace(violation, places=(*violation.places, member(frame, "itemId").place))]


def _in_order(joined: list[str | None], parts: list[object]) -> bool:
    """Return whether the joined texts are among the parts, in order."""
    remaining = iter(parts)
    return all(any(part == text for part in remaining) for text in joined)


def _is_cut(joined: str, output: str) -> bool:
    """Return whether `output` is the start or end of `joined`, or both with a mark for the cut."""
    prefix_length = _common_prefix_length(joined, output)
    common_length = prefix_length + _common_prefix_length(
        joined[prefix_length:][::-1], output[prefix_length:][::-1]
    )
    return (
        common_length > 0
        and len(joined) > len(output)
        and len(output) - common_length <= MAX_MARK_CHARACTERS
    )


def _common_prefix_length(first: str, second: str) -> int:
    """Return the number of characters that two texts share at their beginning."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(first), len(second)))


def _characters(output: str) -> Counter[str]:
    return Counter(join_surrogates(output).replace("\r\n", "\n"))


def _item_key(frame: Frame) -> tuple[str, str, str]:
    params = obj(frame.params)
    turn = text(params.get("threadId")), text(params.get("turnId"))
    return (*turn, text(params.get("itemId")))


def _index(frame: Frame) -> object:
    return obj(frame.params).get("summaryIndex")


def _join_violation(
    trace: Trace,
    item: ItemView,
    frames: tuple[Frame, ...],
    stored: Member,
    method: str,
    index: int,
    joined: str | None,
) -> Violation:
    """Return the violation of a text that differs from its deltas, with the first wrong delta."""
    reason = f"what the deltas ({method}) of {item.subject} join to"
    violation = different(item.subject, frames, stored, joined, reason=reason)
    offset, key = violation.places[0].offset, (item.turn.thread_id, item.turn.id, item.id)
    for frame in frames_between(trace, item.starts[-1], stored.frame):
        params = obj(frame.params)
        if frame.method != method or _item_key(frame) != key:
            continue
        if params.get(_INDEX_PARAMS.get(method, ""), index) != index:
            continue
        delta = text(params.get("delta"))
        if offset < len(delta):
            place = replace(member(frame, "delta").place, offset=offset)
            return replace(violation, places=(*violation.places, place))
        offset -= len(delta)
    return violation
