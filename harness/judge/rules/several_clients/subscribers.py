"""Rules on who is told of the turns of a thread: its subscribers, and not who has left it.

The text speaks of subscribers and does not say what they are told: that it is what happens in the
thread is derived from the word.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import (
    Monitor,
    Outcome,
    Outcomes,
    Witness,
    on,
    on_answer,
    on_harness_message,
    rule,
)
from harness.judge.rules.shared.subscriptions import (
    UNSUBSCRIBE,
    Exchanges,
    closings,
    followers,
    thread_of_request,
)
from harness.judge.rules.shared.told_turns import Told
from harness.judge.rules.shared.view_queries import began_here, never_came
from harness.judge.rules.shared.violations import absent, instead, member
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.order import came_before
from harness.trace.views import OPENING, Conversation, TurnView

# Requests after which it is not certain who follows a thread.
_MOVING = ("thread/archive", "thread/unarchive")
# Requests that show a thread and bring nobody back to it.
_LOOKING = (UNSUBSCRIBE, *methods_with("leaves-turn-alone"))


@rule(
    "clients.subscriber-told",
    title="Who follows a thread is told of its turns",
    level=Level.SHOULD,
    needs=("several-clients",),
)
class SubscriberTold(Monitor):
    """Judges, at the end of a quiescent trace, that each subscriber is told of every turn and item.

    Of turns that another client was told of from beginning to end, on a thread that this client had
    started, resumed or forked before, and did not leave until after it: something of the turn came
    here, and something of each item that was completed there. INFO where nothing shows that the two
    are clients of one server: no turn of the thread was told to both. Whether what came is whole is
    for the rules on turns and items. Left open: turns that this client asked for
    (turn.started-announced), threads that somebody archived, or that were said to be closed.
    """

    def begin(self) -> None:
        self._opened: Frame | None = None
        self._told = Told(self.trace, self.conversation)

    @on_answer(*OPENING)
    def on_opening_answer(self, frame: Frame) -> Outcomes:
        if self._opened is None and frame.kind is Kind.RESPONSE:
            self._opened = frame
        return None

    def finish(self) -> Outcomes:
        if self._opened is None:
            return
        exchanges: Exchanges | None = None
        for view in self._told.others_to_the_end(self._opened):
            for turn in view.turns.values():
                if not (turn.started and turn.completed and began_here(view, turn)):
                    continue
                exchanges = exchanges or Exchanges(self.trace)
                if self._follows(exchanges, turn, self._opened.connection):
                    level = None if self._share(view, turn.thread_id) else Level.INFO
                    yield from self._compared(turn, level)

    def _share(self, view: Conversation, thread_id: str) -> bool:
        """Return whether this client and another were told of one turn of a thread."""
        others = view.thread(thread_id).turns
        mine = self.conversation.thread(thread_id).turns
        return any(
            turn.started and others[turn.id].started for turn in mine.values() if turn.id in others
        )

    def _follows(self, exchanges: Exchanges, turn: TurnView, connection: str) -> bool:
        """Return whether a client certainly followed the thread of a turn from its begin to its
        end.
        """
        thread_id, over = turn.thread_id, turn.completed[0]
        began = turn.request or turn.started[0]
        if any(
            thread_of_request(one) in ("", thread_id)
            for one in exchanges.sent(*_MOVING, before=over)
        ):
            return False
        return not closings(exchanges, thread_id, before=over) and all(
            connection in followers(exchanges, thread_id, at).connections for at in (began, over)
        )

    def _compared(self, turn: TurnView, level: Level | None) -> Iterator[Outcome]:
        mine = self.conversation.turn_at(turn.thread_id, turn.id)
        if mine is not None and mine.request is not None:
            return
        end, here = turn.completed[0], f"on connection {self._connection}"
        if mine is None or not (mine.started or mine.completed):
            expected = f"turn/started and turn/completed of {turn.subject} {here}"
            about = member(end, "turn", "id")
            frames = (turn.started[0], end)
            never = never_came(self.trace)
            yield absent(turn.subject, frames, expected, never, about, level=level)
            return
        missed = False
        for item in turn.items.values():
            if item.completed and item.id not in mine.items:
                missed = True
                about, expected = member(item.completed[0], "item", "id"), f"{item.subject} {here}"
                frames = (item.completed[0],)
                never = never_came(self.trace)
                yield absent(item.subject, frames, expected, never, about, level=level)
        if not missed:
            yield Witness(turn.subject, (end, *(mine.completed or mine.started)[:1]))

    @property
    def _connection(self) -> str:
        return self._opened.connection if self._opened is not None else ""


@rule(
    "clients.left-untold",
    title="Who has left a thread is told no more of its items",
    level=Level.SHOULD,
    needs=("several-clients", "subscription"),
)
class LeftUntold(Monitor):
    """Judges that no item begins or ends on a connection whose client has unsubscribed.

    From the answer `unsubscribed` or `notSubscribed` to its thread/unsubscribe on. Derived from the
    word: a subscriber is who is told, and this client is none any more. A witness needs another
    client that was told of an item of the thread meanwhile. Left open: what comes before that
    answer, threads that the client asked anything more of than to be shown, then or while the
    answer was still due, deltas, and all news of turns and threads, which a server may tell
    everybody.
    """

    def begin(self) -> None:
        self._left: dict[str, Frame] = {}

    @on_answer(UNSUBSCRIBE)
    def on_unsubscribe_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        thread_id = thread_of_request(request) if request is not None else ""
        has_left = dig(frame.result, "status") in ("unsubscribed", "notSubscribed")
        if request is not None and thread_id and has_left and not self._overlaps(request):
            self._left.setdefault(thread_id, frame)
        return None

    def _overlaps(self, request: Frame) -> bool:
        """Return whether the client asked more of the thread at the same time.

        What came last is open.
        """
        for one in self.conversation.requests:
            mine = one is not request and one.connection == request.connection
            if mine and not one.from_target and one.method not in _LOOKING:
                answer = self.conversation.answer_of(one)
                alone = answer is not None and came_before(answer, request)
                if not alone and thread_of_request(one) in ("", thread_of_request(request)):
                    return True
        return False

    @on_harness_message
    def asked(self, frame: Frame) -> Outcomes:
        if self._left and frame.kind is Kind.REQUEST and frame.method not in _LOOKING:
            self._left.pop(thread_of_request(frame), None)
        return None

    @on("item/started", "item/completed")
    def on_item(self, frame: Frame) -> Outcomes:
        thread_id = text(obj(frame.params).get("threadId"))
        answer = self._left.pop(thread_id, None)
        if answer is None:
            return None
        subject, frames = f"thread {thread_id}", (answer, frame)
        expected = f"nothing about items of {subject}, which this client has left"
        return [instead(subject, frames, member(frame, "threadId"), expected)]

    def finish(self) -> Outcomes:
        for thread_id, answer in self._left.items():
            elsewhere = (
                frame
                for frame in self.trace.frames
                if frame.method in ("item/started", "item/completed")
                and frame.connection != answer.connection
                and came_before(answer, frame)
                and text(obj(frame.params).get("threadId")) == thread_id
            )
            first = next(elsewhere, None)
            if first is not None:
                yield Witness(f"thread {thread_id}", (answer, first))
