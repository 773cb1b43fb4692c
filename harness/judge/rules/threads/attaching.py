"""Rules on a thread that is resumed while a turn of it runs: no gap, and nothing told twice.

What is told on one connection is known in order: what came before the answer is in what it shows or
was told already, what comes after it is new. The text says so of no message outright; it follows
from the turn's items that thread/resume shows and from the lifecycle that each item has once: all
of these rules are SHOULD.
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
from harness.judge.rules.shared.state_tracking import RUNNING, status_ends
from harness.judge.rules.shared.stored_turns import MESSAGES, stored_in
from harness.judge.rules.shared.told_turns import Told
from harness.judge.rules.shared.view_queries import DELTAS, began_here, item_in
from harness.judge.rules.shared.violations import Member, differs, member
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.order import by_arrival, came_before, received_before_sent
from harness.trace.views import Conversation, TurnView

MESSAGE_DELTA = "item/agentMessage/delta"


@dataclass(slots=True, eq=False)
class Attached:
    """A turn that runs, as the answer to a thread/resume shows it; `items` by their ids.

    `earlier` are those that answers before it showed, of a client that asks more than once.
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
    """The turns that this client came into, by their thread and their id."""

    def begin(self) -> None:
        self.told = Told(self.trace, self.conversation)
        self.attached: dict[tuple[str, str], Attached] = {}

    def come(self, frame: Frame, *, first: bool = False) -> None:
        """Note which turns the answer to a thread/resume shows in progress.

        The last answer counts, since the client may have left in between; or the `first` one.
        """
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        thread_id = text(dig(frame.result, "thread", "id"))
        shown = stored_in(frame)
        for key in [one for one in self.attached if one[0] == thread_id and one[1] not in shown]:
            # What the client missed, if it had left, is not known of such a turn.
            turn = self.conversation.turn_at(*key)
            if not first and (turn is None or not turn.completed):
                del self.attached[key]
        for turn_id, where in shown.items():
            before = self.attached.get((thread_id, turn_id))
            if obj(where.value).get("status") != RUNNING or (first and before is not None):
                continue
            found = Attached(request, frame, thread_id, turn_id)
            for at, item in enumerate(arr(obj(where.value).get("items"))):
                found.items[text(obj(item).get("id"))] = where.part("items", at)
            if before is not None:
                found.earlier = {**before.earlier, **before.items}
            self.attached[thread_id, turn_id] = found

    def at(self, frame: Frame) -> Attached | None:
        """The turn that a notification is about, where this client came into it before."""
        if not self.attached:
            return None
        params = obj(frame.params)
        turn_id = text(params.get("turnId")) or text(dig(params, "turn", "id"))
        return self.attached.get((text(params.get("threadId")), turn_id))

    def ended_before(self, attached: Attached, item_id: str) -> Frame | None:
        """The item/completed of an item that any client had received before the thread was asked
        for.
        """
        for _, thread in self.told.threads(attached.thread_id, attached.answer):
            turn = thread.turns.get(attached.turn_id)
            item = turn.items.get(item_id) if turn is not None else None
            for end in item.completed if item is not None and not item.is_open else ():
                if received_before_sent(end, attached.request):
                    return end
        return None


@rule(
    "attach.no-duplicate",
    title="What a resumed thread shows as finished is not told again",
    level=Level.SHOULD,
    needs=("history",),
)
class NoDuplicate(_Attaching):
    """Judges that no item/started or item/completed comes for an item that was shown as finished.

    Shown by the answer to thread/resume in the turn that runs, and finished for certain: some
    client had been told of its item/completed before the request was sent, or its status says so.
    Left open: items that may have ended while the request was under way, ids that were used again.
    """

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        self.come(frame, first=True)
        return None

    @on("item/started", "item/completed")
    def on_item(self, frame: Frame) -> Iterator[Outcome]:
        attached = self.at(frame)
        item_id = text(item_in(frame).get("id"))
        if attached is None or item_id not in attached.items:
            return
        where = attached.items[item_id]
        end = self.ended_before(attached, item_id)
        if end is None and not _finished(where):
            return
        subject = f"item {item_id} of {attached.subject}"
        frames = tuple(one for one in (end, attached.answer, frame) if one is not None)
        expected = f"nothing more of {subject}, which {where.name} shows as finished"
        places = (where.place, member(frame, "item", "id").place)
        yield Violation(subject, frames, expected, frame.method, places=places)

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Iterator[Outcome]:
        attached = self.at(frame)
        if attached is None:
            return
        turn = self.conversation.turn_of(frame)
        for item_id, where in attached.items.items():
            item = turn.items.get(item_id) if turn is not None else None
            late = item is not None and any(
                came_before(attached.answer, one) for one in (*item.started, *item.completed)
            )
            if not late and (_finished(where) or self.ended_before(attached, item_id)):
                yield Witness(attached.subject, (attached.answer, frame))
                return


def _finished(where: Member) -> bool:
    """Return whether an item is shown with a status that ends it."""
    item = obj(where.value)
    return item.get("status") in status_ends(text(item.get("type")))


@rule(
    "attach.known-items",
    title="Who resumes a thread is told of no item that it cannot know",
    level=Level.SHOULD,
    needs=("history",),
)
class KnownItems(_Attaching):
    """Judges that each delta of the turn that runs is of an item that the client knows.

    From an answer to thread/resume, or from an item/started on its connection. One finding an
    item. Left open: turns that the last answer does not show at all; an item/completed, which
    carries the whole item.
    """

    def begin(self) -> None:
        super().begin()
        self._judged: set[tuple[str, str]] = set()

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        self.come(frame)
        return None

    @on(*DELTAS)
    def on_delta(self, frame: Frame) -> Outcomes:
        attached = self.at(frame)
        if attached is None:
            return None
        item_id = text(obj(frame.params).get("itemId"))
        key = attached.turn_id, item_id
        if key in self._judged:
            return None
        self._judged.add(key)
        item = self.conversation.item_of(frame)
        subject, frames = f"item {item_id} of {attached.subject}", (attached.answer, frame)
        known = item_id in attached.items or item_id in attached.earlier
        if known or (item is not None and item.started):
            return [Witness(subject, frames)]
        expected = f"{subject} in the answer to thread/resume, or item/started of it"
        places, actual = (member(frame, "itemId").place,), f"{frame.method} first"
        return [Violation(subject, frames, expected, actual, places=places)]


@rule(
    "attach.text-continues",
    title="A message that is shown unfinished goes on where it stands",
    level=Level.SHOULD,
    needs=("history",),
)
class TextContinues(_Attaching):
    """Judges the text of an agentMessage that the answer to thread/resume shows unfinished.

    What is shown and the deltas that come after it are the text of the item/completed. Of the
    deltas that came between the request and its answer any number of the first may be in what is
    shown. Of a client that asks more than once, as one does that has left, the last answer counts.
    Left open: messages that are not shown; ids that were used again.
    """

    def begin(self) -> None:
        super().begin()
        self._asked: list[Frame] = []
        self._pieces: dict[tuple[str, str, str], list[Frame]] = {}

    @on_sent("thread/resume")
    def on_thread_resume_sent(self, frame: Frame) -> Outcomes:
        self._asked.append(frame)
        return None

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        self.come(frame)
        return None

    @on(MESSAGE_DELTA)
    def on_message_delta(self, frame: Frame) -> Outcomes:
        if self._asked:
            params = obj(frame.params)
            ids = [text(params.get(name)) for name in ("threadId", "turnId", "itemId")]
            self._pieces.setdefault((ids[0], ids[1], ids[2]), []).append(frame)
        return None

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        attached, whole = self.at(frame), item_in(frame)
        item_id, final = text(whole.get("id")), whole.get("text")
        if attached is None or item_id not in attached.items or not isinstance(final, str):
            return None
        where = attached.items[item_id].part("text")
        item = self.conversation.item_of(frame)
        again = item is not None and len(item.started) > 1
        if again or not isinstance(where.value, str) or self.ended_before(attached, item_id):
            return None
        pieces = self._pieces.pop((attached.thread_id, attached.turn_id, item_id), [])
        since = [one for one in pieces if came_before(attached.request, one)]
        early = [_delta(one) for one in since if came_before(one, attached.answer)]
        late = "".join(_delta(one) for one in since if came_before(attached.answer, one))
        joined = [where.value + "".join(early[at:]) + late for at in range(len(early) + 1)]
        subject, frames = f"item {item_id} of {attached.subject}", (attached.answer, frame)
        if final in joined:
            return [Witness(subject, frames)]
        place = member(frame, "item", "text")
        why = f"{where.name} of the answer to thread/resume and the deltas after it"
        return [differs(subject, frames, place, joined[-1], why=why)]


def _delta(frame: Frame) -> str:
    return text(obj(frame.params).get("delta"))


@rule(
    "attach.no-gap",
    title="Who resumes a thread misses nothing of the turn that runs",
    level=Level.SHOULD,
    needs=("history",),
)
class NoGap(_Attaching):
    """Judges that every item that another client saw completed in the turn is known here.

    At the end of a trace, of turns that a client came into which was not subscribed before, and
    which it was told the end of: each item is in the answer to thread/resume, or its item/completed
    came here. An item is known by its id; a message by its text too, since the history may have
    other ids. Left open: answers that show the running turn without any item; item types that the
    answer shows none of, where they ended before it; turns that no other client was told of whole.
    """

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        self.come(frame)
        return None

    def finish(self) -> Outcomes:
        for attached in self.attached.values():
            mine = self.conversation.turn_at(attached.thread_id, attached.turn_id)
            if mine is None or not mine.completed or not attached.items:
                continue
            if began_here(self.conversation, mine):
                continue
            others = self.told.others_to_the_end(attached.answer)
            whole = _told_whole(others, attached)
            if whole is not None:
                yield self._compared(attached, mine, whole)

    def _compared(self, attached: Attached, mine: TurnView, whole: TurnView) -> Outcome:
        shown = [obj(where.value) for where in attached.items.values()]
        types = {item.get("type") for item in shown}
        shown += [obj(where.value) for where in attached.earlier.values()]
        here = [item_in(end) for item in mine.items.values() for end in item.completed]
        said = [(item.get("type"), _words(item)) for item in (*shown, *here)]
        ids = {item.get("id") for item in (*shown, *here)}
        done = [item for item in whole.items.values() if item.completed]
        for item in done:
            end = item_in(item.completed[-1])
            if item.id in ids or (item.type, _words(end)) in said:
                continue
            early = received_before_sent(item.completed[-1], attached.request)
            if early and item.type not in types and item.type not in MESSAGES:
                continue
            frames = (item.completed[-1], attached.answer, mine.completed[0])
            expected = f"{item.subject} in the answer to thread/resume, or its item/completed"
            actual = f"neither, on connection {attached.answer.connection}; it says {literal(end)}"
            places = (member(item.completed[-1], "item", "id").place,)
            return Violation(attached.subject, frames, expected, actual, places=places)
        ends = by_arrival(item.completed[-1] for item in done)
        return Witness(attached.subject, (*ends[-1:], attached.answer, mine.completed[0]))


def _told_whole(others: list[Conversation], attached: Attached) -> TurnView | None:
    """The turn as another client was told all of it, None where there is no such client."""
    for view in others:
        turn = view.turn_at(attached.thread_id, attached.turn_id)
        if turn is not None and turn.started and turn.completed and began_here(view, turn):
            return turn
    return None


def _words(item: dict[str, object]) -> str | None:
    """Return a message's text; None for an item of another type, which only its id tells."""
    kind = item.get("type")
    if kind == "agentMessage":
        return text(item.get("text"))
    if kind == "userMessage":
        return "".join(text(obj(part).get("text")) for part in arr(item.get("content")))
    return f"the item {item.get('id')}"
