"""Rules on a thread that is resumed while a turn of it runs: no gap, and no repetition.

The answer to thread/resume shows the turn as of that answer, so messages after it are new. The
specification does not say so outright; it follows from the turn's items that thread/resume shows
and from the single lifecycle of each item: all of these rules are SHOULD.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.judge.base import (
    Monitor,
    Outcome,
    Outcomes,
    Violation,
    Witness,
    on,
    on_answer,
    on_sent,
    rule,
)
from harness.judge.rules.shared.live_turns import LiveTurns
from harness.judge.rules.shared.state_tracking import RUNNING, status_ends
from harness.judge.rules.shared.stored_turns import MESSAGES, stored_turns
from harness.judge.rules.shared.view_queries import DELTAS, began_here, item_in
from harness.judge.rules.shared.violations import Member, different, member
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.order import by_arrival, came_before, received_before_sent
from harness.trace.views import Conversation, TurnView

MESSAGE_DELTA = "item/agentMessage/delta"


@dataclass(slots=True, eq=False)
class Attached:
    """A running turn as the answer to a thread/resume shows it, with its `items` by id.

    `earlier` has the items of earlier answers to the same client.
    """

    request: Frame
    answer: Frame
    thread_id: str
    turn_id: str
    items: dict[str, Member] = field(default_factory=dict[str, Member])
    earlier: dict[str, Member] = field(default_factory=dict[str, Member])

    @property
    def subject(self) -> str:
        """Return its name in findings."""
        return f"turn {self.turn_id}"


class _Attaching(Monitor):
    """Base of rules on the running turns that this client attached to, by thread and turn id."""

    def begin(self) -> None:
        self.live_turns = LiveTurns(self.trace, self.conversation)
        self.attached: dict[tuple[str, str], Attached] = {}

    def note_running_turns(self, frame: Frame, *, first: bool = False) -> None:
        """Note the turns in progress in the answer to a thread/resume.

        If the client resumes a thread again, the later answer replaces the earlier one, unless
        `first`.
        """
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        thread_id = text(dig(frame.result, "thread", "id"))
        stored = stored_turns(frame)
        for key in [
            attached_key
            for attached_key in self.attached
            if attached_key[0] == thread_id and attached_key[1] not in stored
        ]:
            # The client may have left and missed messages of such a turn.
            turn = self.conversation.turn_at(*key)
            if not first and (turn is None or not turn.completions):
                del self.attached[key]
        for turn_id, shown_turn in stored.items():
            before = self.attached.get((thread_id, turn_id))
            if obj(shown_turn.value).get("status") != RUNNING or (first and before is not None):
                continue
            attached = Attached(request, frame, thread_id, turn_id)
            for index, item in enumerate(arr(obj(shown_turn.value).get("items"))):
                attached.items[text(obj(item).get("id"))] = shown_turn.part("items", index)
            if before is not None:
                attached.earlier = {**before.earlier, **before.items}
            self.attached[thread_id, turn_id] = attached

    def attached_turn(self, frame: Frame) -> Attached | None:
        """Return the turn of a notification if this client attached to it before, else None."""
        if not self.attached:
            return None
        params = obj(frame.params)
        turn_id = text(params.get("turnId")) or text(dig(params, "turn", "id"))
        return self.attached.get((text(params.get("threadId")), turn_id))

    def item_end_before(self, attached: Attached, item_id: str) -> Frame | None:
        """Return the item/completed that any client got before the thread/resume, or None."""
        for _, thread in self.live_turns.thread_views(attached.thread_id, attached.answer):
            turn = thread.turns.get(attached.turn_id)
            item = turn.items.get(item_id) if turn is not None else None
            for end in item.completions if item is not None and not item.is_open else ():
                if received_before_sent(end, attached.request):
                    return end
        return None


@rule(
    "attach.no-duplicate",
    title="Items that thread/resume shows as finished are not repeated",
    level=Level.SHOULD,
    needs=("history",),
)
class NoDuplicate(_Attaching):
    """Judges that no item/started or item/completed comes for an item that was shown as finished.

    The answer to thread/resume shows it in the running turn, and it is certainly finished: some
    client had received its item/completed before the request was sent, or its status says so. Left
    open: items that may have ended while the request was in flight, and reused ids.
    """

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        self.note_running_turns(frame, first=True)
        return None

    @on("item/started", "item/completed")
    def on_item(self, frame: Frame) -> Iterator[Outcome]:
        attached = self.attached_turn(frame)
        item_id = text(item_in(frame).get("id"))
        if attached is None or item_id not in attached.items:
            return
        field = attached.items[item_id]
        end = self.item_end_before(attached, item_id)
        if end is None and not _is_finished(field):
            return
        subject = f"item {item_id} of {attached.subject}"
        frames = tuple(message for message in (end, attached.answer, frame) if message is not None)
        expected = f"nothing more of {subject}, which {field.name} shows as finished"
        places = (field.place, member(frame, "item", "id").place)
        yield Violation(subject, frames, expected, frame.method, places=places)

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Outcome]:
        attached = self.attached_turn(frame)
        if attached is None:
            return
        turn = self.conversation.turn_of(frame)
        for item_id, shown_item in attached.items.items():
            item = turn.items.get(item_id) if turn is not None else None
            late = item is not None and any(
                came_before(attached.answer, message)
                for message in (*item.starts, *item.completions)
            )
            if not late and (_is_finished(shown_item) or self.item_end_before(attached, item_id)):
                yield Witness(attached.subject, (attached.answer, frame))
                return


def _is_finished(field: Member) -> bool:
    """Return whether an item is shown with a status that ends it."""
    item = obj(field.value)
    return item.get("status") in status_ends(text(item.get("type")))


@rule(
    "attach.known-items",
    title="Deltas after thread/resume belong to known items",
    level=Level.SHOULD,
    needs=("history",),
)
class KnownItems(_Attaching):
    """Judges that each delta of the running turn belongs to an item that the client knows.

    It knows the items in an answer to thread/resume, and those with an item/started on its
    connection. One finding per item. Left open: turns that the last answer does not show at all; an
    item/completed, which carries the whole item.
    """

    def begin(self) -> None:
        super().begin()
        self._judged: set[tuple[str, str]] = set()

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        self.note_running_turns(frame)
        return None

    @on(*DELTAS)
    def on_delta(self, frame: Frame) -> Outcomes:
        attached = self.attached_turn(frame)
        if attached is None:
            return None
        item_id = text(obj(frame.params).get("itemId"))
        key = attached.turn_id, item_id
        if key in self._judged:
            return None
        self._judged.add(key)
        item = self.conversation.item_of(frame)
        subject, frames = f"item {item_id} of {attached.subject}", (attached.answer, frame)
        is_known = item_id in attached.items or item_id in attached.earlier
        if is_known or (item is not None and item.starts):
            return [Witness(subject, frames)]
        expected = f"{subject} in the answer to thread/resume, or item/started of it"
        places, actual = (member(frame, "itemId").place,), f"{frame.method} first"
        return [Violation(subject, frames, expected, actual, places=places)]


@rule(
    "attach.text-continues",
    title="An unfinished message continues from its shown text",
    level=Level.SHOULD,
    needs=("history",),
)
class TextContinues(_Attaching):
    """Judges the text of an agentMessage that the answer to thread/resume shows unfinished.

    The shown text plus the later deltas is the text of the item/completed. The shown text may
    include the first few of the deltas that came between the request and its answer. If a client
    resumes more than once, the last answer counts. Left open: messages that are not shown; reused
    ids.
    """

    def begin(self) -> None:
        super().begin()
        self._resumes: list[Frame] = []
        self._pieces: dict[tuple[str, str, str], list[Frame]] = {}

    @on_sent("thread/resume")
    def on_thread_resume_sent(self, frame: Frame) -> Outcomes:
        self._resumes.append(frame)
        return None

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        self.note_running_turns(frame)
        return None

    @on(MESSAGE_DELTA)
    def on_message_delta(self, frame: Frame) -> Outcomes:
        if self._resumes:
            params = obj(frame.params)
            ids = [text(params.get(name)) for name in ("threadId", "turnId", "itemId")]
            self._pieces.setdefault((ids[0], ids[1], ids[2]), []).append(frame)
        return None

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        attached, final_item = self.attached_turn(frame), item_in(frame)
        item_id, final = text(final_item.get("id")), final_item.get("text")
        if attached is None or item_id not in attached.items or not isinstance(final, str):
            return None
        field = attached.items[item_id].part("text")
        item = self.conversation.item_of(frame)
        again = item is not None and len(item.starts) > 1
        if again or not isinstance(field.value, str) or self.item_end_before(attached, item_id):
            return None
        pieces = self._pieces.pop((attached.thread_id, attached.turn_id, item_id), [])
        since = [delta for delta in pieces if came_before(attached.request, delta)]
        early = [_delta(delta) for delta in since if came_before(delta, attached.answer)]
        late = "".join(_delta(delta) for delta in since if came_before(attached.answer, delta))
        joined = [field.value + "".join(early[index:]) + late for index in range(len(early) + 1)]
        subject, frames = f"item {item_id} of {attached.subject}", (attached.answer, frame)
        if final in joined:
            return [Witness(subject, frames)]
        place = member(frame, "item", "text")
        reason = f"{field.name} of the answer to thread/resume and the deltas after it"
        return [different(subject, frames, place, joined[-1], reason=reason)]


def _delta(frame: Frame) -> str:
    return text(obj(frame.params).get("delta"))


@rule(
    "attach.no-gap",
    title="A client that resumes a thread misses nothing of the running turn",
    level=Level.SHOULD,
    needs=("history",),
)
class NoGap(_Attaching):
    """Judges that every item that another client saw completed in the turn is known here.

    Judged at the end of a trace, for turns that a client attached to and saw the end of: each item
    is in the answer to thread/resume, or its item/completed came here. An item is known by its id;
    a message also by its text, since the history may have other ids. Left open: answers that show
    the running turn without items; item types that the answer does not show, for items that ended
    before it; turns that no other client saw completely.
    """

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        self.note_running_turns(frame)
        return None

    def finish(self) -> Outcomes:
        for attached in self.attached.values():
            turn = self.conversation.turn_at(attached.thread_id, attached.turn_id)
            if turn is None or not turn.completions or not attached.items:
                continue
            if began_here(self.conversation, turn):
                continue
            views = self.live_turns.other_views_at_end(attached.answer)
            full_turn = _fully_seen_turn(views, attached)
            if full_turn is not None:
                yield self._compare(attached, turn, full_turn)

    def _compare(self, attached: Attached, turn: TurnView, full_turn: TurnView) -> Outcome:
        shown_items = [obj(field.value) for field in attached.items.values()]
        types = {item.get("type") for item in shown_items}
        shown_items += [obj(field.value) for field in attached.earlier.values()]
        here = [item_in(end) for item in turn.items.values() for end in item.completions]
        known_texts = [(item.get("type"), _item_text(item)) for item in (*shown_items, *here)]
        ids = {item.get("id") for item in (*shown_items, *here)}
        done = [item for item in full_turn.items.values() if item.completions]
        for item in done:
            end = item_in(item.completions[-1])
            if item.id in ids or (item.type, _item_text(end)) in known_texts:
                continue
            early = received_before_sent(item.completions[-1], attached.request)
            if early and item.type not in types and item.type not in MESSAGES:
                continue
            frames = (item.completions[-1], attached.answer, turn.completions[0])
            expected = f"{item.subject} in the answer to thread/resume, or its item/completed"
            actual = f"neither, on connection {attached.answer.connection}; it says {literal(end)}"
            places = (member(item.completions[-1], "item", "id").place,)
            return Violation(attached.subject, frames, expected, actual, places=places)
        ends = by_arrival(item.completions[-1] for item in done)
        return Witness(attached.subject, (*ends[-1:], attached.answer, turn.completions[0]))


def _fully_seen_turn(views: list[Conversation], attached: Attached) -> TurnView | None:
    """Return the turn as another client saw all of it, None if no client did."""
    for view in views:
        turn = view.turn_at(attached.thread_id, attached.turn_id)
        if turn is not None and turn.starts and turn.completions and began_here(view, turn):
            return turn
    return None


def _item_text(item: dict[str, object]) -> str | None:
    """Return the text of a message, or the id of an item of another type."""
    kind = item.get("type")
    if kind == "agentMessage":
        return text(item.get("text"))
    if kind == "userMessage":
        return "".join(text(obj(part).get("text")) for part in arr(item.get("content")))
    return f"the item {item.get('id')}"
