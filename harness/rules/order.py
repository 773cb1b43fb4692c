"""Rules on the order of a turn's messages, within one connection.

Here: turn/started, then item/*, then turn/completed ("Ordering"), and which turn and thread a
message says it belongs to. The text gives no other order: the place of errors, status changes,
diffs, plans and token counts is open, and so is the place of the turn/start reply.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.rules.base import (
    Monitor,
    Outcomes,
    Violation,
    Witness,
    on,
    on_answer,
    on_kind,
    rule,
)
from harness.rules.subjects import (
    DELTAS,
    began_here,
    named_by_answer,
    ours,
    thread_began_here,
    turn_id_of,
)
from harness.rules.telling import Member, member, wrong
from harness.rules.verdict import Level
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.values import dig, obj, text
from harness.trace.views import TurnView

# Notices about a turn whose place among its other messages the text does not give.
NOTICES = ("turn/diff/updated", "turn/plan/updated", "model/rerouted")
ITEM_EVENTS = ("item/started", "item/completed", *DELTAS, "item/mcpToolCall/progress")


@rule(
    "turn.started-first", title="turn/started comes before the items of its turn", level=Level.MUST
)
class StartedFirst(Monitor):
    """Judges that no item/* notification and no turn/completed of a turn precedes turn/started.

    A finding needs a turn/started that came too late, or the end of a turn that never had one on a
    thread that was started within the trace (a client that resumed a thread may have come in the
    middle of a turn). Left open: the place of the turn/start reply and of other notifications, and
    turns of our own turn/start that are never announced (turn.started-announced).
    """

    def begin(self) -> None:
        self._early: dict[str, Frame] = {}
        self._announced: set[str] = set()

    @on("turn/started")
    def started(self, frame: Frame) -> Outcomes:
        turn_id = turn_id_of(frame)
        self._announced.add(turn_id)
        early = self._early.pop(turn_id, None)
        if early is None or not ours(self.conversation, self.conversation.turns.get(turn_id)):
            return None
        expected = f"turn/started of turn {turn_id} before {early.method}"
        places = (member(frame, "turn", "id").place,)
        frames, actual = (early, frame), f"{early.method} first"
        return [Violation(f"turn {turn_id}", frames, expected, actual, places=places)]

    @on(*ITEM_EVENTS)
    def item(self, frame: Frame) -> Outcomes:
        turn_id = obj(frame.params).get("turnId")
        if isinstance(turn_id, str) and turn_id not in self._announced:
            self._early.setdefault(turn_id, frame)
        return None

    @on("turn/completed")
    def completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or len(turn.completed) > 1 or not ours(self.conversation, turn):
            return None
        if turn.started:
            early = turn.id in self._early or not began_here(self.conversation, turn)
            return None if early else [Witness(turn.subject, (turn.started[0], frame))]
        if turn.reply is not None or not thread_began_here(self.conversation, turn):
            self._early.setdefault(turn.id, frame)
            return None
        actual = "turn/completed, and no turn/started before it"
        expected, places = (
            f"turn/started of {turn.subject} first",
            (member(frame, "turn", "id").place,),
        )
        return [Violation(turn.subject, (frame,), expected, actual, places=places)]


@rule(
    "turn.completed-last",
    title="turn/completed comes after the items of its turn",
    level=Level.MUST,
)
class CompletedLast(Monitor):
    """Judges that no item/* notification of a turn comes after its turn/completed.

    One finding per item. Left open: other notifications, whose place the text does not give, and
    server requests, which are no notifications.
    """

    def begin(self) -> None:
        self._ended: dict[str, Frame] = {}
        self._late: set[tuple[str, str]] = set()

    @on("turn/completed")
    def completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or not ours(self.conversation, turn):
            return None
        self._ended.setdefault(turn.id, frame)
        return [Witness(turn.subject, (frame,))] if turn.items else None

    @on(*ITEM_EVENTS)
    def item(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        turn_id = params.get("turnId")
        if not isinstance(turn_id, str) or turn_id not in self._ended:
            return None
        item_id = text(params.get("itemId")) or text(dig(params, "item", "id"))
        if (turn_id, item_id) in self._late:
            return None
        self._late.add((turn_id, item_id))
        actual = f"{frame.method} of item {item_id} after it"
        frames = (self._ended[turn_id], frame)
        expected = f"turn/completed as the last about the items of turn {turn_id}"
        places = (member(self._ended[turn_id], "turn", "id").place, _turn_id(frame).place)
        return [Violation(f"turn {turn_id}", frames, expected, actual, places=places)]


@rule("turn.known-thread", title="A turn's messages name its thread", level=Level.MUST)
class KnownThread(Monitor):
    """Judges that the threadId of turn/*, item/* and model/rerouted is the thread of their turn.

    The thread of a turn is that of the turn/start that made it; until its reply is seen, the one
    first named. One finding per turn and wrong id. Left open: turns of others, and
    missing ids (shapes).
    """

    def begin(self) -> None:
        self._home: dict[str, str] = {}
        self._named: dict[str, Frame] = {}
        self._found: set[tuple[str, str]] = set()

    @on("turn/started", "turn/completed", *ITEM_EVENTS, *NOTICES)
    def named(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        turn_id, thread_id = params.get("turnId"), params.get("threadId")
        if turn_id is None:
            turn_id = dig(params, "turn", "id")
        if not isinstance(turn_id, str) or not isinstance(thread_id, str):
            return None
        home = self._home.setdefault(turn_id, thread_id)
        if home != thread_id:
            return self._wrong(turn_id, home, thread_id, frame)
        self._named.setdefault(turn_id, frame)
        if frame.method != "turn/completed":
            return None
        turn = self.conversation.turns.get(turn_id)
        return [Witness(f"turn {turn_id}", (frame,))] if ours(self.conversation, turn) else None

    @on_answer("turn/start")
    def reply(self, frame: Frame) -> Outcomes:
        turn_id = text(dig(frame.result, "turn", "id"))
        request = self.conversation.request_of(frame)
        if request is None or not turn_id:
            return None
        thread_id = text(obj(request.params).get("threadId"))
        home = self._home.setdefault(turn_id, thread_id)
        if home == thread_id or turn_id not in self._named:
            return None
        self._home[turn_id] = thread_id
        return self._wrong(turn_id, thread_id, home, self._named[turn_id])

    def _wrong(self, turn_id: str, home: str, thread_id: str, frame: Frame) -> Outcomes:
        turn = self.conversation.turns.get(turn_id)
        if (turn_id, thread_id) in self._found or not ours(self.conversation, turn):
            return None
        self._found.add((turn_id, thread_id))
        expected = f"{literal(home)}, the thread of turn {turn_id}"
        where = member(frame, "threadId")
        return [wrong(f"turn {turn_id}", (frame,), where, expected, also=(_turn_id(frame),))]


@rule("item.known-turn", title="Items belong to a turn that was announced", level=Level.MUST)
class KnownTurn(Monitor):
    """Judges that item/* notifications name a turn that turn/started or an answer has named.

    A finding, at the end of a quiescent trace: a turn on a thread that was started within the
    trace, of which nothing but item notifications ever came. Whether it was named in time is for
    turn.started-first, and so is a turn that only ended. Left open: threads that were resumed or
    forked (their turns may have begun before), turns of others, missing ids (shapes).
    """

    def begin(self) -> None:
        self._answered: set[str] = set()

    @on_kind(Kind.RESPONSE)
    def answer(self, frame: Frame) -> Outcomes:
        self._answered.update(named_by_answer(frame))
        return None

    @on("turn/completed")
    def completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or not turn.started or not ours(self.conversation, turn):
            return None
        first = _first_of_items(turn)
        return None if first is None else [Witness(turn.subject, (turn.started[0], first))]

    def finish(self) -> Outcomes:
        for turn in self.conversation.turns.values():
            named = turn.reply or turn.started or turn.completed or turn.id in self._answered
            first = None if named else _first_of_items(turn)
            if first is None or not thread_began_here(self.conversation, turn):
                continue
            expected = "the id of a turn that turn/started or an answer has named"
            yield wrong(turn.subject, (first,), _turn_id(first), expected)


@rule(
    "turn.notice-known-turn",
    title="Notices name a turn that was announced",
    level=Level.MUST,
    needs=("plan-update",),
)
class NoticeKnownTurn(Monitor):
    """Judges that turn/diff/updated, turn/plan/updated and model/rerouted name an announced turn.

    Their place is open, so what names no turn is judged at the end of a quiescent trace, and only
    on threads that were started within the trace. Left open: turns that item messages alone name
    (item.known-turn), missing ids (shapes), whether the turn was running (its place is open).
    """

    once = True

    def begin(self) -> None:
        self._answered: set[str] = set()
        self._strange: list[Frame] = []

    @on_kind(Kind.RESPONSE)
    def answer(self, frame: Frame) -> Outcomes:
        self._answered.update(named_by_answer(frame))
        return None

    @on(*NOTICES)
    def notice(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or not turn.started:
            self._strange.append(frame)
            return None
        if not ours(self.conversation, turn):
            return None
        return [Witness(turn.subject, (turn.started[0], frame))]

    def finish(self) -> Outcomes:
        for frame in self._strange:
            turn_id = turn_id_of(frame)
            turn = self.conversation.turns.get(turn_id)
            thread = self.conversation.threads.get(text(obj(frame.params).get("threadId")))
            if not turn_id or thread is None or thread.reply is None:
                continue
            if turn_id in self._answered or (turn is not None and _named(turn)):
                continue
            expected = "the id of a turn that turn/started or an answer has named"
            yield wrong(f"turn {turn_id}", (frame,), _turn_id(frame), expected)


def _turn_id(frame: Frame) -> Member:
    """Where a notification names its turn."""
    if "turnId" in obj(frame.params):
        return member(frame, "turnId")
    return member(frame, "turn", "id")


def _named(turn: TurnView) -> bool:
    return bool(turn.reply or turn.started or turn.completed or turn.items)


def _first_of_items(turn: TurnView) -> Frame | None:
    """The first message about an item of the turn, None where there was none."""
    firsts = [
        frame
        for item in turn.items.values()
        for frame in (*item.started[:1], *item.completed[:1], item.first_delta)
        if frame is not None
    ]
    return min(firsts, key=lambda frame: frame.seq, default=None)
