"""Rules on the history in thread/read, thread/resume and thread/fork: it equals the live one."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from typing import Any

from harness.judge.base import Monitor, Outcome, Outcomes, Violation, Witness, on_answer, rule
from harness.judge.rules.shared.live_turns import LiveTurns
from harness.judge.rules.shared.state_tracking import COMPLETED, RUNNING
from harness.judge.rules.shared.stored_turns import (
    MAX_IDS,
    MESSAGES,
    Rollbacks,
    compare_messages,
    compare_turn,
    completed_items,
    stored_turns,
)
from harness.judge.rules.shared.view_queries import RequestsOfAllClients
from harness.judge.rules.shared.violations import (
    Member,
    different,
    member,
    unexpected_member,
    wrong,
)
from harness.judge.verdict import Level
from harness.protocol.spec.item_types import required_members
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.order import received_before_sent
from harness.trace.views import TurnView, items_of

# The required members of each item type other than messages.
OTHERS = {kind: keys for kind, keys in required_members().items() if kind not in MESSAGES}
SHOWING_HISTORY = ("thread/resume", "thread/fork")
TURNS_CLAUSE = {"thread/resume": "thread-resume.turns", "thread/fork": "thread-fork.turns"}


class _History(Monitor):
    """Base of rules that compare live turns with later answers."""

    def begin(self) -> None:
        self.live_turns = LiveTurns(self.trace, self.conversation)
        self.rollbacks = Rollbacks(self.trace, self.live_turns)

    def turns_ended_before(self, answer: Frame) -> list[TurnView]:
        """Return the turns that had ended when the thread was requested.

        [] if a rollback may have dropped some, or the thread is ephemeral and need not be stored.
        """
        request = self.conversation.request_of(answer)
        if request is None or request.deliberate or answer.kind is not Kind.RESPONSE:
            return []
        thread_id = text(obj(request.params).get("threadId"))
        if self.rollbacks.may_concern(thread_id, answer) or self.live_turns.is_ephemeral(
            thread_id, answer
        ):
            return []
        return self.live_turns.turns_ended_before(thread_id, request)


def _thread_subject(answer: Frame) -> str:
    return f"thread {text(dig(answer.result, 'thread', 'id'))}"


@rule(
    "thread.history-shown",
    title="A resumed or forked thread comes with its turns",
    level=Level.SHOULD,
    needs=("history",),
)
class HistoryShown(_History):
    """Judges that thread/resume and thread/fork return turns if one had ended before.

    That follows from two clauses, since the items of these turns are to be filled: SHOULD. Left
    open: which turns (resume.stored-equals-live, fork.copies-history), threads without a completed
    turn, ephemeral ones, rejections, threads after a rollback.
    """

    @on_answer(*SHOWING_HISTORY)
    def on_showing_history_answer(self, frame: Frame) -> Outcomes:
        done = [turn for turn in self.turns_ended_before(frame) if turn.status == COMPLETED]
        request = self.conversation.request_of(frame)
        if not done or request is None:
            return None
        frames = (done[0].completions[0], frame)
        if arr(dig(frame.result, "thread", "turns")):
            return [Witness(_thread_subject(frame), frames)]
        field = member(frame, "thread", "turns")
        expected = f"the turns of the thread, as many as had ended: {len(done)}"
        clauses = (TURNS_CLAUSE[request.method],)
        return [wrong(_thread_subject(frame), frames, field, expected, clauses=clauses)]


@rule(
    "turn.items-filled",
    title="Turns have their items where a thread is resumed or forked",
    level=Level.MUST,
    needs=("history",),
)
class ItemsFilled(_History):
    """Judges that the turns in the answers to thread/resume and thread/fork have items ("Turn").

    A finding: a turn without items that had an item/completed before. If the turns of a fork have
    new ids, they are matched by position. SHOULD for a turn that was cut off: the specification
    does not say how much of it is stored. Left open: a running turn, a missing or null member
    (shapes), ephemeral threads, threads after a rollback.
    """

    @on_answer(*SHOWING_HISTORY)
    def on_showing_history_answer(self, frame: Frame) -> Outcomes:
        ended, stored = self.turns_ended_before(frame), stored_turns(frame)
        turns = {turn.id: turn for turn in ended}
        if not turns.keys() & stored.keys():
            turns = dict(zip(stored, ended, strict=False))
        for turn_id, field in stored.items():
            turn, items = turns.get(turn_id), obj(field.value).get("items")
            if turn is None or not isinstance(items, list) or _is_running(field.value):
                continue
            ends = [completion for item in turn.items.values() for completion in item.completions]
            subject, frames = f"turn {turn_id}", (*ends[:1], frame)
            if items:
                yield Witness(subject, frames)
            elif ends:
                level = None if turn.status == COMPLETED else Level.SHOULD
                expected = f"the items of the turn, {len(turn.items)} of which were told"
                yield wrong(subject, frames, field.part("items"), expected, level=level)


def _is_running(turn: object) -> bool:
    return obj(turn).get("status") == RUNNING


@rule(
    "resume.stored-equals-live",
    title="A resumed thread shows the streamed turns",
    level=Level.SHOULD,
    needs=("history",),
)
class ResumedEqualsLive(_History):
    """Judges the turns in the answer to thread/resume against the live turns, by turn id.

    Compared, for each turn that had certainly ended before, on any connection: that it is there,
    its status, the message of its error, and the texts of its user and agent messages in order.
    Left open: as for read.stored-equals-live, and answers without any turn (thread.history-shown),
    turns without items (turn.items-filled).
    """

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        stored = stored_turns(frame)
        for turn in self.turns_ended_before(frame) if stored else ():
            violation = compare_turn(turn, stored.get(turn.id), frame)
            yield violation or Witness(turn.subject, (turn.completions[0], frame))


@rule("turn.in-its-thread", title="A turn is among those of its thread", level=Level.MUST)
class InItsThread(_History):
    """Judges that a turn is shown by the thread that it was started on, and by no other.

    Judged in the answers to thread/read with includeTurns and thread/resume that show turns. A turn
    was certainly started on a thread if a turn/start with that thread id was answered with it, and
    it completed before. It is of another thread if only that one reported its id, and its messages
    are the same. Left open: threads that were forked after the turn began and have a copy;
    ephemeral threads, and threads that were rolled back, or compacted: the specification does not
    say which turns those still show.
    """

    def begin(self) -> None:
        super().begin()
        self._compactions = RequestsOfAllClients(self.trace, "thread/compact/start")

    @on_answer("thread/read", "thread/resume")
    def on_history(self, frame: Frame) -> Outcomes:
        stored, request = stored_turns(frame), self.conversation.request_of(frame)
        if not stored or request is None:
            return
        thread_id = text(obj(request.params).get("threadId"))
        for turn in (
            () if self._may_be_compacted(thread_id, frame) else self.turns_ended_before(frame)
        ):
            if turn.reply is None or turn.status != COMPLETED:
                continue
            frames = (turn.reply, turn.completions[0], frame)
            if turn.id in stored:
                yield Witness(turn.subject, frames)
                continue
            turns = member(frame, "thread", "turns")
            expected = (
                f"{turns.name}: {turn.subject}, which was started on {_thread_subject(frame)}"
            )
            actual = f"{turns.name}: {', '.join(list(stored)[:MAX_IDS])}"
            yield Violation(turn.subject, frames, expected, actual, places=(turns.place,))
        yield from self._judge_strangers(thread_id, stored, frame)

    def _may_be_compacted(self, thread_id: str, answer: Frame) -> bool:
        return bool(self._compactions.before(answer)) or any(
            item.type == "contextCompaction"
            for _, thread in self.live_turns.thread_views(thread_id, answer)
            for turn in thread.turns.values()
            for item in turn.items.values()
        )

    def _judge_strangers(
        self, thread_id: str, stored: dict[str, Member], answer: Frame
    ) -> Iterator[Violation]:
        """Report the turns of other threads that a thread shows."""
        own = {
            turn_id
            for _, thread in self.live_turns.thread_views(thread_id, answer)
            for turn_id in thread.turns
        }
        for view in self.live_turns.views(answer):
            for turn in view.turns.values():
                field = stored.get(turn.id)
                if field is None or turn.id in own or turn.thread_id in ("", thread_id):
                    continue
                items = items_of(field.value)
                if turn.reply is None or not turn.completions or not items:
                    continue
                if compare_messages(turn, field) is not None:
                    continue
                if self._may_be_copied(thread_id, turn, answer):
                    continue
                frames, subject = (turn.reply, answer), turn.subject
                expected = f"no turn of thread {turn.thread_id} in thread {thread_id}"
                yield unexpected_member(subject, frames, field.part("id"), expected)

    def _may_be_copied(self, thread_id: str, turn: TurnView, answer: Frame) -> bool:
        """Return whether the thread may have had the turn, or one like it, unseen by any client.

        It cannot if a client opened the thread before the turn began and never left it.
        """
        request = turn.request
        return request is None or not any(
            received_before_sent(thread.opening_answers[0], request)
            for _, thread in self.live_turns.thread_views(thread_id, answer)
            if thread.opening_answers and not thread.leaving_frames
        )


@rule(
    "history.items-as-told",
    title="Every item that was streamed is in the history",
    level=Level.SHOULD,
)
class ItemsAsTold(_History):
    """Judges that the history of completed turns has their items other than messages, unchanged.

    In the answers to thread/read with includeTurns, thread/resume and thread/fork, in turns that
    are shown with items under their ids: each completed item is there, and its required members
    equal those of its item/completed. Derived: the history has the items, and item/completed the
    final form of each; the specification does not say that a server stores every type, so SHOULD.
    Left open: item ids, optional members, items that only the history has, unspecified types.
    """

    @on_answer("thread/read", *SHOWING_HISTORY)
    def on_history(self, frame: Frame) -> Outcomes:
        stored = stored_turns(frame)
        for turn in self.turns_ended_before(frame) if stored else ():
            field = stored.get(turn.id)
            if field is None or turn.status != COMPLETED or not items_of(field.value):
                continue
            yield from self._compare(turn, field, frame)

    def _compare(self, turn: TurnView, field: Member, frame: Frame) -> Iterator[Outcome]:
        stored_items = dict(enumerate(items_of(field.value)))
        live_items = [item for item in completed_items(turn) if text(item.get("type")) in OTHERS]
        frames = (turn.completions[0], frame)
        for item in live_items:
            kind = text(item.get("type"))
            place = _match(item, stored_items)
            if place is None:
                expected = f"{field.part('items').name}: a {kind} of {turn.subject}, as was told"
                types = ", ".join(
                    text(stored_item.get("type")) for stored_item in items_of(field.value)
                )
                actual, places = (
                    f"{field.part('items').name}: {types}",
                    (field.part("items").place,),
                )
                yield Violation(turn.subject, frames, expected, actual, places=places)
                return
            same_item = stored_items.pop(place)
            for key in _differing_members(item, same_item):
                stored, reason = (
                    field.part("items", place, key),
                    f"as item/completed told of the {kind}",
                )
                yield different(turn.subject, frames, stored, item.get(key), reason=reason)
                return
        if live_items:
            yield Witness(turn.subject, frames)


def _differing_members(item: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return the required members in which two items differ."""
    needed = OTHERS.get(text(item.get("type")), ())
    return [key for key in needed if item.get(key) != other.get(key)]


def _match(item: dict[str, Any], stored: dict[int, dict[str, Any]]) -> int | None:
    """Return the index of the stored item that matches: by id, else by content, else by type.

    None if there is no stored item of that type.
    """
    same_type = [index for index, other in stored.items() if other.get("type") == item.get("type")]
    same = [index for index in same_type if stored[index].get("id") == item.get("id")]
    equal = [index for index in same_type if not _differing_members(item, stored[index])]
    return next(iter((*same, *equal, *same_type)), None)


@rule("history.item-ids", title="Items keep their ids in the history", level=Level.INFO)
class ItemIds(_History):
    """Records whether the messages of a turn have the ids in the history that they had live.

    Compared in the answers to thread/read with includeTurns and thread/resume. The specification
    does not say whether ids are kept.
    """

    once = True

    @on_answer("thread/read", "thread/resume")
    def on_history(self, frame: Frame) -> Outcomes:
        history = stored_turns(frame)
        for turn in self.turns_ended_before(frame) if history else ():
            field = history.get(turn.id)
            if (
                field is None
                or turn.status != COMPLETED
                or compare_messages(turn, field) is not None
            ):
                continue
            live_ids = {item.get("id") for item in completed_items(turn)}
            for index, item in enumerate(items_of(field.value)):
                if item.get("type") not in MESSAGES:
                    continue
                if item.get("id") in live_ids:
                    yield Witness("item ids", (turn.completions[0], frame))
                    continue
                stored = field.part("items", index, "id")
                yield wrong("item ids", (turn.completions[0], frame), stored, "an id that was told")
