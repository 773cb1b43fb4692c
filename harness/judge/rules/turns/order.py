"""Rules on the order of a turn's messages, within one connection.

The specification gives no other order: the position of errors, status changes, diffs, plans, token
counts and of the turn/start reply is open.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import (
    Monitor,
    Outcomes,
    Violation,
    Witness,
    on,
    on_kind,
    on_sent,
    rule,
)
from harness.judge.rules.shared.view_queries import (
    DELTAS,
    began_here,
    completed_on_unknown_thread,
    has_other_clients,
    is_named_by_turns_only,
    is_own_turn,
    thread_began_here,
    turn_id_of,
    turn_ids_in_answer,
)
from harness.judge.rules.shared.violations import Member, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.order import earliest
from harness.trace.views import TurnView

# Notifications about a turn whose position is not specified.
NOTICES = ("turn/diff/updated", "turn/plan/updated", "model/rerouted")
COMPACTION = "contextCompaction"
ITEM_EVENTS = ("item/started", "item/completed", *DELTAS, "item/mcpToolCall/progress")


@rule(
    "turn.started-first", title="turn/started comes before the items of its turn", level=Level.MUST
)
class StartedFirst(Monitor):
    """Judges that no item/* notification and no turn/completed of a turn precedes turn/started.

    A finding needs a late turn/started, or the end of a turn without one on a thread that was
    started in the trace (a client that resumed a thread may have attached to a running turn). Left
    open: the position of the turn/start reply and of other notifications, and turns of this client
    that are never announced (turn.started-announced).
    """

    def begin(self) -> None:
        self._early_messages: dict[str, Frame] = {}
        self._announced: set[str] = set()

    @on("turn/started")
    def on_turn_started(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None:
            return None
        self._announced.add(turn.key)
        early = self._early_messages.pop(turn.key, None)
        if early is None or not is_own_turn(self.conversation, turn):
            return None
        expected = f"turn/started of {turn.subject} before {early.method}"
        places = (member(frame, "turn", "id").place,)
        frames, actual = (early, frame), f"{early.method} first"
        return [Violation(turn.subject, frames, expected, actual, places=places)]

    @on(*ITEM_EVENTS)
    def on_item_event(self, frame: Frame) -> Outcomes:
        turn = self.conversation.key_of(frame)
        if turn and turn not in self._announced:
            self._early_messages.setdefault(turn, frame)
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or len(turn.completions) > 1 or not is_own_turn(self.conversation, turn):
            return None
        if turn.starts:
            early = turn.key in self._early_messages or not began_here(self.conversation, turn)
            return None if early else [Witness(turn.subject, (turn.starts[0], frame))]
        if turn.reply is not None or not thread_began_here(self.conversation, turn):
            self._early_messages.setdefault(turn.key, frame)
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

    One finding per item. A contextCompaction item has no turn of its own if the history is
    compacted between turns: it is left open on a thread with a requested compaction, and SHOULD if
    the server compacts by itself. Left open: other notifications, whose position the specification
    does not give, and server requests, which are not notifications.
    """

    def begin(self) -> None:
        self._turn_ends: dict[str, Frame] = {}
        self._late_items: set[tuple[str, str]] = set()
        self._compacting: set[str] = set()

    @on_sent("thread/compact/start")
    def on_thread_compact_start_sent(self, frame: Frame) -> Outcomes:
        self._compacting.add(text(obj(frame.params).get("threadId")))
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or not is_own_turn(self.conversation, turn):
            return None
        self._turn_ends.setdefault(turn.key, frame)
        return [Witness(turn.subject, (frame,))] if turn.items else None

    @on(*ITEM_EVENTS)
    def on_item_event(self, frame: Frame) -> Outcomes:
        params = obj(frame.params)
        turn = self.conversation.turn_of(frame)
        if turn is None or turn.key not in self._turn_ends:
            return None
        item_id = text(params.get("itemId")) or text(dig(params, "item", "id"))
        if (turn.key, item_id) in self._late_items:
            return None
        item = turn.items.get(item_id)
        compaction = item is not None and item.type == COMPACTION
        if compaction and {turn.thread_id, ""} & self._compacting:
            return None
        self._late_items.add((turn.key, item_id))
        end, actual = self._turn_ends[turn.key], f"{frame.method} of item {item_id} after it"
        expected = f"turn/completed as the last about the items of {turn.subject}"
        places = (member(end, "turn", "id").place, _turn_id(frame).place)
        level = Level.SHOULD if compaction else None
        return [Violation(turn.subject, (end, frame), expected, actual, level, places=places)]


@rule("turn.known-thread", title="A turn's messages name its thread", level=Level.MUST)
class KnownThread(Monitor):
    """Judges that a message about a turn names the turn's thread.

    Two turns of two threads may have one id, so a message on a thread without such a turn is judged
    only if it shows which turn it belongs to. A finding: one about an open item of a turn, and one
    on an otherwise unknown thread while the only turn with that id is running: MUST for the end of
    a turn that never ends otherwise (at the end of a quiescent trace), SHOULD for other messages,
    since a late message of another client's thread would look the same. One finding per turn and
    wrong id. Left open: threads that this client opened (item.known-turn, turn.started-first and
    others judge those), turns of other clients, several connections, missing ids (shapes).
    """

    def begin(self) -> None:
        self._reported: set[tuple[str, str]] = set()

    @on("turn/started", "turn/completed", "error", *ITEM_EVENTS, *NOTICES)
    def on_turn_message(self, frame: Frame) -> Outcomes:
        turn, thread_id = self.conversation.turn_of(frame), obj(frame.params).get("threadId")
        if not isinstance(thread_id, str):
            return None
        if turn is not None and turn.thread_id != thread_id:
            return self._wrong(turn, thread_id, frame)
        if frame.method == "error" or frame.method in NOTICES:
            meant = self._running_turn(frame, thread_id)
            if meant is not None:
                return self._wrong(meant, thread_id, frame, Level.SHOULD)
        if turn is None or frame.method != "turn/completed":
            return None
        return [Witness(turn.subject, (frame,))] if is_own_turn(self.conversation, turn) else None

    def finish(self) -> Outcomes:
        for turn in self.conversation.turns.values():
            end = completed_on_unknown_thread(self.conversation, turn)
            if end is not None and (turn.reply or turn.starts):
                yield from self._wrong(turn, text(obj(end.params).get("threadId")), end) or ()

    def _running_turn(self, frame: Frame, thread_id: str) -> TurnView | None:
        """Return the only running turn with the id in a message on an unknown thread, else None."""
        turn_id = turn_id_of(frame)
        running = [
            turn
            for turn in self.conversation.turns.values()
            if turn.id == turn_id and (turn.starts or turn.reply)
        ]
        if (
            len(running) != 1
            or running[0].completions
            or not is_named_by_turns_only(self.conversation, thread_id)
        ):
            return None
        return None if has_other_clients(self.trace, frame) else running[0]

    def _wrong(
        self, turn: TurnView, thread_id: str, frame: Frame, level: Level | None = None
    ) -> Outcomes:
        if (turn.key, thread_id) in self._reported or not is_own_turn(self.conversation, turn):
            return None
        self._reported.add((turn.key, thread_id))
        expected = f"{literal(turn.thread_id)}, the thread of {turn.subject}"
        field, also = member(frame, "threadId"), (_turn_id(frame),)
        return [wrong(turn.subject, (frame,), field, expected, also=also, level=level)]


@rule("item.known-turn", title="Items belong to a turn that was announced", level=Level.MUST)
class KnownTurn(Monitor):
    """Judges that item/* notifications name a turn that turn/started or an answer has named.

    A finding, at the end of a quiescent trace: a turn on a thread that was started in the trace, of
    which only item notifications came. The order is judged by turn.started-first, and so is a turn
    that only ended. Left open: a compaction outside turns, with contextCompaction items only;
    threads that were resumed or forked (their turns may have begun before), turns of other clients,
    missing ids (shapes).
    """

    def begin(self) -> None:
        self._answered_ids: set[str] = set()

    @on_kind(Kind.RESPONSE)
    def on_response(self, frame: Frame) -> Outcomes:
        self._answered_ids.update(turn_ids_in_answer(self.conversation, frame))
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or not turn.starts or not is_own_turn(self.conversation, turn):
            return None
        first = _first_of_items(turn)
        return None if first is None else [Witness(turn.subject, (turn.starts[0], first))]

    def finish(self) -> Outcomes:
        for turn in self.conversation.turns.values():
            evidence = (
                turn.reply or turn.starts or turn.completions or turn.id in self._answered_ids
            )
            first = None if evidence else _first_of_items(turn)
            if all(item.type == COMPACTION for item in turn.items.values()):
                continue
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

    Their position is open, so they are judged at the end of a quiescent trace, and only on threads
    that were started in the trace. Left open: turns that only item messages name (item.known-turn),
    missing ids (shapes), whether the turn was running.
    """

    once = True

    def begin(self) -> None:
        self._answered_ids: set[str] = set()
        self._unknown_notices: list[Frame] = []

    @on_kind(Kind.RESPONSE)
    def on_response(self, frame: Frame) -> Outcomes:
        self._answered_ids.update(turn_ids_in_answer(self.conversation, frame))
        return None

    @on(*NOTICES)
    def on_notice(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or not turn.starts:
            self._unknown_notices.append(frame)
            return None
        if not is_own_turn(self.conversation, turn):
            return None
        return [Witness(turn.subject, (turn.starts[0], frame))]

    def finish(self) -> Outcomes:
        for frame in self._unknown_notices:
            turn_id, turn = turn_id_of(frame), self.conversation.turn_of(frame)
            thread = self.conversation.threads.get(text(obj(frame.params).get("threadId")))
            if not turn_id or thread is None or thread.reply is None:
                continue
            if turn_id in self._answered_ids or (turn is not None and _is_named(turn)):
                continue
            expected = "the id of a turn that turn/started or an answer has named"
            yield wrong(f"turn {turn_id}", (frame,), _turn_id(frame), expected)


def _turn_id(frame: Frame) -> Member:
    """Return the member of a notification that names its turn."""
    if "turnId" in obj(frame.params):
        return member(frame, "turnId")
    return member(frame, "turn", "id")


def _is_named(turn: TurnView) -> bool:
    return bool(turn.reply or turn.starts or turn.completions or turn.items)


def _first_of_items(turn: TurnView) -> Frame | None:
    """Return the first message about an item of the turn, None if there is none."""
    firsts = [
        frame
        for item in turn.items.values()
        for frame in (*item.starts[:1], *item.completions[:1], item.first_delta)
        if frame is not None
    ]
    return earliest(firsts)
