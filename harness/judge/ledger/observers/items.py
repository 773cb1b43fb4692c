"""Choices about items: ids, outputs, parts, interruptions."""

from collections.abc import Iterator
from typing import Final

from harness.judge.base import on, on_answer, on_kind
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.words import names, outcome, word
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.views import ItemView

_OUTPUT: Final = "item/commandExecution/outputDelta"
# An output of this length counts as long.
_LONG_OUTPUT_CHARACTERS: Final = 60_000


@observes("item.exit-code-status", "item.output-size", "item.output-order")
class Commands(Observer):
    """The item of a command that has ended."""

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Iterator[Choice]:
        """Yield the exit code, the size and the order of a command's output."""
        item = obj(dig(frame.params, "item"))
        if item.get("type") != "commandExecution":
            return
        code = item.get("exitCode")
        if isinstance(code, int) and not isinstance(code, bool) and code != 0:
            yield Choice("item.exit-code-status", word(item.get("status")), frame)
        output = item.get("aggregatedOutput")
        view = self.scene.conversation.item_of(frame)
        if not isinstance(output, str) or view is None or not view.has_all_deltas:
            return
        streamed = view.joined_deltas(_OUTPUT)
        if (
            streamed is not None
            and len(streamed) > len(output)
            and len(streamed) > _LONG_OUTPUT_CHARACTERS
        ):
            yield Choice("item.output-size", "cut in the item, whole in its deltas", frame)
        elif len(output) >= _LONG_OUTPUT_CHARACTERS:
            yield Choice("item.output-size", "long output is there", frame)
        if streamed is not None and len(streamed) == len(output) and len(set(streamed.split())) > 1:
            same = (
                "as the deltas have it"
                if streamed == output
                else "in another order than the deltas"
            )
            yield Choice("item.output-order", same, frame)


@observes("item.completed-when-cut", "item.review-cut")
class Cut(Observer):
    """Items that were open when their turn was interrupted or failed."""

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Choice]:
        """Yield whether the open items of a cut turn are completed."""
        turn = self.scene.conversation.turn_of(frame)
        if (
            turn is None
            or turn.status not in ("interrupted", "failed")
            or len(turn.completions) > 1
        ):
            return
        cuts = turn.interrupts if turn.status == "interrupted" else turn.errors
        since = cuts[0].seq if cuts else frame.seq
        for item in turn.items.values():
            if not item.starts or item.starts[-1].seq > since:
                continue
            situation = f"{word(item.type)}, {turn.status}"
            if item.is_open:
                yield Choice("item.completed-when-cut", "no", frame, situation)
            elif item.completions[-1].seq > since:
                yield Choice("item.completed-when-cut", "yes", frame, situation)
        kinds = {item.type for item in turn.items.values()}
        if "enteredReviewMode" in kinds:
            value = "yes" if "exitedReviewMode" in kinds else "no"
            situation = f"the review is {turn.status}"
            yield Choice("item.review-cut", f"exitedReviewMode: {value}", frame, situation)


@observes("item.reasoning-indexes", "item.summary-boundary")
class Reasoning(Observer):
    """Indexes of summaries and raw blocks, and announcements of summary sections."""

    def begin(self) -> None:
        """Set up the state."""
        self._seen: dict[tuple[str, str, str], set[int]] = {}
        self._announced: set[tuple[str, str, int]] = set()

    @on("item/reasoning/summaryPartAdded")
    def on_item_reasoning_summary_part_added(self, frame: Frame) -> None:
        """Note the announced section."""
        params = obj(frame.params)
        index = params.get("summaryIndex")
        if isinstance(index, int):
            self._announced.add((frame.connection, text(params.get("itemId")), index))

    @on("item/reasoning/summaryTextDelta", "item/reasoning/textDelta")
    def on_reasoning_delta(self, frame: Frame) -> Iterator[Choice]:
        """Yield the index of a section's first delta, and whether the section was announced."""
        params = obj(frame.params)
        member = "summaryIndex" if "summaryIndex" in params else "contentIndex"
        index, item = params.get(member), text(params.get("itemId"))
        if not isinstance(index, int):
            return
        key = frame.connection, item, member
        seen = self._seen.setdefault(key, set())
        if index in seen:
            return
        if not seen:
            yield Choice("item.reasoning-indexes", f"from {index}", frame, member)
        elif index != max(seen) + 1:
            yield Choice("item.reasoning-indexes", "with gaps", frame, member)
        seen.add(index)
        if member == "summaryIndex":
            value = "announced" if (frame.connection, item, index) in self._announced else "not"
            section = "the first section" if len(seen) == 1 else "a later section"
            yield Choice("item.summary-boundary", value, frame, section)


@observes("item.id-scope", "thread.id-scope")
class Scopes(Observer):
    """The scopes within which ids are unique."""

    def begin(self) -> None:
        """Set up the state."""
        self._items: dict[tuple[str, str], dict[str, str]] = {}
        self._turns: dict[tuple[str, str], str] = {}

    @on("item/started")
    def on_item_started(self, frame: Frame) -> Iterator[Choice]:
        """Yield the scope of item ids: the turn if another turn had the id, else the thread."""
        params = obj(frame.params)
        thread, turn = text(params.get("threadId")), text(params.get("turnId"))
        of_thread = self._items.setdefault((frame.connection, thread), {})
        item = text(dig(params, "item", "id"))
        before = of_thread.setdefault(item, turn)
        if before != turn:
            yield Choice("item.id-scope", "the turn: another turn has the same", frame)
        elif len(set(of_thread.values())) > 1:
            yield Choice("item.id-scope", "the thread, as far as was seen", frame)

    @on("turn/started")
    def on_turn_started(self, frame: Frame) -> Iterator[Choice]:
        """Yield the scope of turn ids: the thread if another thread had the id, else all."""
        thread = text(obj(frame.params).get("threadId"))
        turn = text(dig(frame.params, "turn", "id"))
        before = self._turns.setdefault((frame.connection, turn), thread)
        if before != thread:
            yield Choice("thread.id-scope", "a turn's: the thread", frame)
        elif (
            len({owner for (name, _), owner in self._turns.items() if name == frame.connection}) > 1
        ):
            yield Choice("thread.id-scope", "a turn's: all threads, as far as was seen", frame)


@observes("item.review-begins", "item.review-detached")
class Reviews(Observer):
    """Reviews: the result of review/start, and the thread in which they run."""

    @on_answer("review/start")
    def on_review_start_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield the members of the result and, for a detached review, its thread."""
        request = self.scene.request_of(frame)
        if request is None:
            return
        if frame.kind is Kind.RESPONSE:
            yield Choice("item.review-begins", names(frame.result), frame, "the result")
        if obj(request.params).get("delivery") != "detached":
            return
        place = outcome(frame)
        if frame.kind is Kind.RESPONSE:
            own = dig(frame.result, "reviewThreadId") != obj(request.params).get("threadId")
            place = "in a thread of its own" if own else "in the thread itself"
        yield Choice("item.review-detached", place, frame)


@observes("item.dynamic-tool-flow")
class DynamicTools(Observer):
    """Tools that the client offers, and requests to run them."""

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Iterator[Choice]:
        """Yield the members of a request about a tool."""
        if frame.method.startswith("item/tool/"):
            yield Choice("item.dynamic-tool-flow", names(frame.params), frame, frame.method)

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield the outcome of a thread/start that offers tools."""
        request = self.scene.request_of(frame)
        if request is not None and "dynamicTools" in obj(request.params):
            yield Choice("item.dynamic-tool-flow", outcome(frame), frame, "dynamicTools offered")


@observes("item.duplicate-delta")
class EmptyDeltas(Observer):
    """Empty deltas of the model, which a server may pass on."""

    # In its first turn the model emits an empty delta among others.
    SCENARIO: Final = "choices/odd-input"

    def begin(self) -> None:
        """Set up the state."""
        self._empty = False

    @on("item/agentMessage/delta")
    def on_item_agent_message_delta(self, frame: Frame) -> Iterator[Choice]:
        """Yield the first empty delta."""
        if not self._empty and obj(frame.params).get("delta") == "":
            self._empty = True
            yield Choice("item.duplicate-delta", "sent", frame)

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Choice]:
        """Yield that the empty delta of the scenario's first turn was left out."""
        if not self._empty and self.scene.scenario == self.SCENARIO:
            yield Choice("item.duplicate-delta", "left out", frame)


@observes("item.plan-made")
class PlanItems(Observer):
    """Messages in a turn with a plan item."""

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Choice]:
        """Yield whether a turn with a plan also has an agentMessage."""
        turn = self.scene.conversation.turn_of(frame)
        kinds = [item.type for item in turn.items.values()] if turn is not None else []
        if "plan" in kinds:
            value = "with an agentMessage" if "agentMessage" in kinds else "without an agentMessage"
            yield Choice("item.plan-made", value, frame)


@observes("event.compaction-names", "thread-compact.turn")
class Compactions(Observer):
    """Notifications of a compaction."""

    @on_kind(Kind.NOTIFICATION)
    def on_notification(self, frame: Frame) -> Iterator[Choice]:
        """Yield the name of a notification about compaction."""
        if "compact" in frame.method:
            yield Choice("event.compaction-names", frame.method, frame)

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Iterator[Choice]:
        """Yield the notifications and the turn of a contextCompaction item."""
        if dig(frame.params, "item", "type") != "contextCompaction":
            return
        yield Choice("event.compaction-names", "item/started, item/completed", frame)
        turn = self.scene.conversation.turn_of(frame)
        if turn is None:
            return
        if turn.request is not None:
            place = "within the turn that needs it"
        else:
            place = "a turn of its own" if turn.starts else "no turn/started for it"
        yield Choice("thread-compact.turn", place, frame)


@observes("turn-steer.shown")
class Steers(Observer):
    """Steered input as items of its turn."""

    def begin(self) -> None:
        """Set up the state."""
        self._steered: dict[tuple[str, str], list[str]] = {}

    @on_answer("turn/steer")
    def on_turn_steer_answer(self, frame: Frame) -> None:
        """Note the steered input."""
        request = self.scene.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        turn = text(dig(frame.result, "turnId"))
        words = [text(dig(entry, "text")) for entry in arr(obj(request.params).get("input"))]
        self._steered.setdefault((frame.connection, turn), []).extend(
            word for word in words if word
        )

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Choice]:
        """Yield whether the turn had a userMessage for each steered input."""
        turn = self.scene.conversation.turn_of(frame)
        key = frame.connection, text(dig(frame.params, "turn", "id"))
        steered = self._steered.pop(key, None)
        if turn is None or not steered:
            return
        shown_texts = [
            text(user_text) for item in turn.items.values() for user_text in _texts(item)
        ]
        for words in steered:
            value = "as a userMessage" if words in shown_texts else "no"
            yield Choice("turn-steer.shown", value, frame, f"the turn is {word(turn.status)}")


def _texts(item: ItemView) -> Iterator[str]:
    if item.type == "userMessage":
        for frame in (*item.starts[:1], *item.completions[:1]):
            for entry in arr(dig(frame.params, "item", "content")):
                yield text(dig(entry, "text"))


@observes("thread-operations.params")
class Operations(Observer):
    """Accepted params of the six thread operations whose params the specification omits."""

    @on_answer(
        "thread/unarchive",
        "thread/name/set",
        "thread/loaded/list",
        "thread/unsubscribe",
        "thread/rollback",
        "thread/compact/start",
    )
    def on_operation_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield the names of the params of a granted request."""
        request = self.scene.request_of(frame)
        if request is not None and frame.kind is Kind.RESPONSE:
            yield Choice("thread-operations.params", names(request.params), frame, request.method)
