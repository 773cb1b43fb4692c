"""Rules on who gets the events of a thread's turns: its subscribers, not former ones.

The specification speaks of subscribers and does not say which messages they get: that they get the
events of the thread is derived from the word.
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
from harness.judge.rules.shared.live_turns import LiveTurns
from harness.judge.rules.shared.subscriptions import (
    UNSUBSCRIBE,
    Exchanges,
    closings,
    followers,
    thread_of_request,
)
from harness.judge.rules.shared.view_queries import began_here, describe_silence
from harness.judge.rules.shared.violations import absent, member, unexpected_member
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.order import came_before
from harness.trace.views import OPENING_METHODS, Conversation, TurnView

# Requests after which the subscribers of a thread are uncertain.
_ARCHIVING = ("thread/archive", "thread/unarchive")
# Requests that show a thread and subscribe no client to it.
_READ_ONLY_METHODS = (UNSUBSCRIBE, *methods_with("leaves-turn-alone"))


@rule(
    "clients.subscriber-told",
    title="Subscribers of a thread get its turns",
    level=Level.SHOULD,
    needs=("several-clients",),
)
class SubscriberTold(Monitor):
    """Judges, at the end of a quiescent trace, that each subscriber gets every turn and item.

    Judged are turns that another client got from start to end, on a thread that this client had
    started, resumed or forked before, and did not leave until after it: some message of the turn
    came here, and one of each item that was completed there. INFO if nothing shows that the two are
    clients of one server: no turn of the thread was sent to both. The rules on turns and items
    judge whether it is complete. Left open: turns that this client started
    (turn.started-announced), threads that any client archived, or that were reported as closed.
    """

    def begin(self) -> None:
        self._opened: Frame | None = None
        self._turns_elsewhere = LiveTurns(self.trace, self.conversation)

    @on_answer(*OPENING_METHODS)
    def on_opening_answer(self, frame: Frame) -> Outcomes:
        if self._opened is None and frame.kind is Kind.RESPONSE:
            self._opened = frame
        return None

    def finish(self) -> Outcomes:
        if self._opened is None:
            return
        exchanges: Exchanges | None = None
        for view in self._turns_elsewhere.other_views_at_end(self._opened):
            for turn in view.turns.values():
                if not (turn.starts and turn.completions and began_here(view, turn)):
                    continue
                exchanges = exchanges or Exchanges(self.trace)
                if self._follows(exchanges, turn, self._opened.connection):
                    level = None if self._is_shared_turn(view, turn.thread_id) else Level.INFO
                    yield from self._compare_turn(turn, level)

    def _is_shared_turn(self, view: Conversation, thread_id: str) -> bool:
        """Return whether this client and another both got a turn of a thread."""
        other_turns = view.thread(thread_id).turns
        own_turns = self.conversation.thread(thread_id).turns
        return any(
            turn.starts and other_turns[turn.id].starts
            for turn in own_turns.values()
            if turn.id in other_turns
        )

    def _follows(self, exchanges: Exchanges, turn: TurnView, connection: str) -> bool:
        """Return whether a client certainly followed the thread during the whole of a turn."""
        thread_id, end = turn.thread_id, turn.completions[0]
        start = turn.request or turn.starts[0]
        if any(
            thread_of_request(request) in ("", thread_id)
            for request in exchanges.requests(*_ARCHIVING, before=end)
        ):
            return False
        return not closings(exchanges, thread_id, before=end) and all(
            connection in followers(exchanges, thread_id, moment).connections
            for moment in (start, end)
        )

    def _compare_turn(self, turn: TurnView, level: Level | None) -> Iterator[Outcome]:
        own_turn = self.conversation.turn_at(turn.thread_id, turn.id)
        if own_turn is not None and own_turn.request is not None:
            return
        end, suffix = turn.completions[0], f"on connection {self._connection}"
        if own_turn is None or not (own_turn.starts or own_turn.completions):
            expected = f"turn/started and turn/completed of {turn.subject} {suffix}"
            field = member(end, "turn", "id")
            frames = (turn.starts[0], end)
            never = describe_silence(self.trace)
            yield absent(turn.subject, frames, expected, never, field, level=level)
            return
        has_missed = False
        for item in turn.items.values():
            if item.completions and item.id not in own_turn.items:
                has_missed = True
                field = member(item.completions[0], "item", "id")
                expected = f"{item.subject} {suffix}"
                frames = (item.completions[0],)
                never = describe_silence(self.trace)
                yield absent(item.subject, frames, expected, never, field, level=level)
        if not has_missed:
            yield Witness(turn.subject, (end, *(own_turn.completions or own_turn.starts)[:1]))

    @property
    def _connection(self) -> str:
        return self._opened.connection if self._opened is not None else ""


@rule(
    "clients.left-untold",
    title="A client that unsubscribed gets no more items of the thread",
    level=Level.SHOULD,
    needs=("several-clients", "subscription"),
)
class LeftUntold(Monitor):
    """Judges that no item starts or ends on a connection whose client has unsubscribed.

    Judged after the answer `unsubscribed` or `notSubscribed` to its thread/unsubscribe. Derived
    from the word: only subscribers get events, and this client is not one any more. A witness needs
    another client that got an item of the thread meanwhile. Left open: messages before that answer,
    threads to which the client sent any further request but one that shows them, then or while the
    answer was pending, deltas, and all other notifications about turns and threads, which a server
    may send to all clients.
    """

    def begin(self) -> None:
        self._unsubscribed: dict[str, Frame] = {}

    @on_answer(UNSUBSCRIBE)
    def on_unsubscribe_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        thread_id = thread_of_request(request) if request is not None else ""
        has_left = dig(frame.result, "status") in ("unsubscribed", "notSubscribed")
        if request is not None and thread_id and has_left and not self._overlaps(request):
            self._unsubscribed.setdefault(thread_id, frame)
        return None

    def _overlaps(self, request: Frame) -> bool:
        """Return whether the client sent another request about the thread at the same time.

        The order of the two is open then.
        """
        for other in self.conversation.requests:
            is_other_request = other is not request and other.connection == request.connection
            if (
                is_other_request
                and not other.from_target
                and other.method not in _READ_ONLY_METHODS
            ):
                answer = self.conversation.answer_of(other)
                alone = answer is not None and came_before(answer, request)
                if not alone and thread_of_request(other) in ("", thread_of_request(request)):
                    return True
        return False

    @on_harness_message
    def on_client_request(self, frame: Frame) -> Outcomes:
        if (
            self._unsubscribed
            and frame.kind is Kind.REQUEST
            and frame.method not in _READ_ONLY_METHODS
        ):
            self._unsubscribed.pop(thread_of_request(frame), None)
        return None

    @on("item/started", "item/completed")
    def on_item(self, frame: Frame) -> Outcomes:
        thread_id = text(obj(frame.params).get("threadId"))
        answer = self._unsubscribed.pop(thread_id, None)
        if answer is None:
            return None
        subject, frames = f"thread {thread_id}", (answer, frame)
        expected = f"nothing about items of {subject}, which this client has left"
        return [unexpected_member(subject, frames, member(frame, "threadId"), expected)]

    def finish(self) -> Outcomes:
        for thread_id, answer in self._unsubscribed.items():
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
