"""Rules on the history that thread/resume and thread/fork show: it is what was streamed."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from typing import Any

from harness.judge.base import Monitor, Outcome, Outcomes, Violation, Witness, on_answer, rule
from harness.judge.rules.shared.state_tracking import COMPLETED, RUNNING
from harness.judge.rules.shared.stored_turns import (
    MAX_IDS,
    MESSAGES,
    Rollbacks,
    completed_items,
    other_messages,
    other_than_told,
    stored_in,
)
from harness.judge.rules.shared.told_turns import Told
from harness.judge.rules.shared.view_queries import SentByAnybody
from harness.judge.rules.shared.violations import Member, differs, instead, member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.item_types import required_members
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.order import received_before_sent
from harness.trace.views import TurnView, items_of

# The other types of items that have members of their own, and those that each must have.
OTHERS = {kind: keys for kind, keys in required_members().items() if kind not in MESSAGES}
SHOWING_HISTORY = ("thread/resume", "thread/fork")
TURNS_CLAUSE = {"thread/resume": "thread-resume.turns", "thread/fork": "thread-fork.turns"}


class _History(Monitor):
    """The turns of a thread that clients were told of, and the answers that show them later."""

    def begin(self) -> None:
        self.told = Told(self.trace, self.conversation)
        self.rollbacks = Rollbacks(self.trace, self.conversation)

    def ended(self, answer: Frame) -> list[TurnView]:
        """The turns that had ended when the thread was asked for.

        None where a rollback may have dropped some, and of an ephemeral thread, of which nothing
        need be kept.
        """
        request = self.conversation.request_of(answer)
        if request is None or request.deliberate or answer.kind is not Kind.RESPONSE:
            return []
        thread_id = text(obj(request.params).get("threadId"))
        if self.rollbacks.may_concern(thread_id, answer) or self.told.ephemeral(thread_id, answer):
            return []
        return self.told.ended_before(thread_id, request)


def _thread(answer: Frame) -> str:
    return f"thread {text(dig(answer.result, 'thread', 'id'))}"


@rule(
    "thread.history-shown",
    title="A resumed or forked thread comes with its turns",
    level=Level.SHOULD,
    needs=("history",),
)
class HistoryShown(_History):
    """Judges that thread/resume and thread/fork return turns where one had ended before.

    That they have turns follows from two clauses, since the items of these turns are to be filled:
    SHOULD. Left open: which (resume.stored-equals-live, fork.copies-history), threads without a
    completed turn, ephemeral ones, refusals, threads after a rollback.
    """

    @on_answer(*SHOWING_HISTORY)
    def on_showing_history_answer(self, frame: Frame) -> Outcomes:
        done = [turn for turn in self.ended(frame) if turn.status == COMPLETED]
        request = self.conversation.request_of(frame)
        if not done or request is None:
            return None
        frames = (done[0].completed[0], frame)
        if arr(dig(frame.result, "thread", "turns")):
            return [Witness(_thread(frame), frames)]
        where = member(frame, "thread", "turns")
        expected = f"the turns of the thread, as many as had ended: {len(done)}"
        clauses = (TURNS_CLAUSE[request.method],)
        return [wrong(_thread(frame), frames, where, expected, clauses=clauses)]


@rule(
    "turn.items-filled",
    title="Turns have their items where a thread is resumed or forked",
    level=Level.MUST,
    needs=("history",),
)
class ItemsFilled(_History):
    """Judges that the turns in the answers to thread/resume and thread/fork have items ("Turn").

    A finding: a turn without any, of which item/completed was told before. Where the turns of a
    fork have new ids they are known by their place. SHOULD for a turn that was cut off, of which
    it is not said how much is kept. Left open: a turn that runs, a missing or null member (shapes),
    ephemeral threads, threads after a rollback.
    """

    @on_answer(*SHOWING_HISTORY)
    def on_showing_history_answer(self, frame: Frame) -> Outcomes:
        ended, shown = self.ended(frame), stored_in(frame)
        told = {turn.id: turn for turn in ended}
        if not told.keys() & shown.keys():
            told = dict(zip(shown, ended, strict=False))
        for turn_id, where in shown.items():
            turn, items = told.get(turn_id), obj(where.value).get("items")
            if turn is None or not isinstance(items, list) or _runs(where.value):
                continue
            ends = [one for item in turn.items.values() for one in item.completed]
            subject, frames = f"turn {turn_id}", (*ends[:1], frame)
            if items:
                yield Witness(subject, frames)
            elif ends:
                level = None if turn.status == COMPLETED else Level.SHOULD
                expected = f"the items of the turn, {len(turn.items)} of which were told"
                yield wrong(subject, frames, where.part("items"), expected, level=level)


def _runs(turn: object) -> bool:
    return obj(turn).get("status") == RUNNING


@rule(
    "resume.stored-equals-live",
    title="What a resumed thread shows is what was streamed",
    level=Level.SHOULD,
    needs=("history",),
)
class ResumedEqualsLive(_History):
    """Judges the turns in the answer to thread/resume against the turns told live, by turn id.

    Compared, for each turn that had certainly ended before, on whichever connection it was told:
    that it is there, its status, the message of its error, and the texts of its user and agent
    messages in order. As read.stored-equals-live, with what that leaves open. Left open too:
    answers without any turn (thread.history-shown), turns without items (turn.items-filled).
    """

    @on_answer("thread/resume")
    def on_thread_resume_answer(self, frame: Frame) -> Outcomes:
        stored = stored_in(frame)
        for turn in self.ended(frame) if stored else ():
            found = other_than_told(turn, stored.get(turn.id), frame)
            yield found or Witness(turn.subject, (turn.completed[0], frame))


@rule("turn.in-its-thread", title="A turn is among those of its thread", level=Level.MUST)
class InItsThread(_History):
    """Judges that a turn is shown by the thread that it was started on, and by no other.

    In the answers to thread/read with includeTurns and thread/resume that show turns. A turn was
    started there for certain when a turn/start that named the thread was answered with it, and it
    was told as completed before. In another thread: one whose id only that thread told of, with the
    same messages. Left open: threads that were forked after the turn began, which have a copy;
    ephemeral threads, threads that were compacted, of which it is not said what they still show, or
    rolled back.
    """

    def begin(self) -> None:
        super().begin()
        self._compactions = SentByAnybody(self.trace, "thread/compact/start")

    @on_answer("thread/read", "thread/resume")
    def on_history(self, frame: Frame) -> Outcomes:
        shown, request = stored_in(frame), self.conversation.request_of(frame)
        if not shown or request is None:
            return
        thread_id = text(obj(request.params).get("threadId"))
        for turn in () if self._compacted(thread_id, frame) else self.ended(frame):
            if turn.reply is None or turn.status != COMPLETED:
                continue
            frames = (turn.reply, turn.completed[0], frame)
            if turn.id in shown:
                yield Witness(turn.subject, frames)
                continue
            turns = member(frame, "thread", "turns")
            expected = f"{turns.name}: {turn.subject}, which was started on {_thread(frame)}"
            actual = f"{turns.name}: {', '.join(list(shown)[:MAX_IDS])}"
            yield Violation(turn.subject, frames, expected, actual, places=(turns.place,))
        yield from self._strangers(thread_id, shown, frame)

    def _compacted(self, thread_id: str, answer: Frame) -> bool:
        return bool(self._compactions.before(answer)) or any(
            item.type == "contextCompaction"
            for _, thread in self.told.threads(thread_id, answer)
            for turn in thread.turns.values()
            for item in turn.items.values()
        )

    def _strangers(
        self, thread_id: str, shown: dict[str, Member], answer: Frame
    ) -> Iterator[Violation]:
        """The turns of other threads that a thread shows."""
        own = {one for _, thread in self.told.threads(thread_id, answer) for one in thread.turns}
        for view in self.told.views(answer):
            for turn in view.turns.values():
                where = shown.get(turn.id)
                if where is None or turn.id in own or turn.thread_id in ("", thread_id):
                    continue
                said = items_of(where.value)
                if turn.reply is None or not turn.completed or not said:
                    continue
                if other_messages(turn, where) is not None:
                    continue
                if self._may_be_copied(thread_id, turn, answer):
                    continue
                frames, subject = (turn.reply, answer), turn.subject
                expected = f"no turn of thread {turn.thread_id} in thread {thread_id}"
                yield instead(subject, frames, where.part("id"), expected)

    def _may_be_copied(self, thread_id: str, turn: TurnView, answer: Frame) -> bool:
        """Return whether the thread may have had the turn, or another like it, that nobody was told
        of.

        It has not where a client opened the thread before the turn began, and never left it.
        """
        asked = turn.request
        return asked is None or not any(
            received_before_sent(thread.opened[0], asked)
            for _, thread in self.told.threads(thread_id, answer)
            if thread.opened and not thread.left
        )


@rule(
    "history.items-as-told",
    title="Every item that was streamed is in the history",
    level=Level.SHOULD,
)
class ItemsAsTold(_History):
    """Judges the items of other types than messages, in turns that were told as completed.

    In the answers to thread/read with includeTurns, thread/resume and thread/fork, in turns that
    are shown with items under their ids: that each item that was told as completed is there, and
    that the members that its type must have are those of its item/completed.
    Derived: the history holds the items, and item/completed the final form of each; that a server
    keeps every type of item is not said, so SHOULD. Left open: item ids, members that may be
    missing, items that the turn was not told of, types that the text does not name.
    """

    @on_answer("thread/read", *SHOWING_HISTORY)
    def answer(self, frame: Frame) -> Outcomes:
        shown = stored_in(frame)
        for turn in self.ended(frame) if shown else ():
            where = shown.get(turn.id)
            if where is None or turn.status != COMPLETED or not items_of(where.value):
                continue
            yield from self._compared(turn, where, frame)

    def _compared(self, turn: TurnView, where: Member, frame: Frame) -> Iterator[Outcome]:
        kept = dict(enumerate(items_of(where.value)))
        told = [item for item in completed_items(turn) if text(item.get("type")) in OTHERS]
        frames = (turn.completed[0], frame)
        for item in told:
            kind = text(item.get("type"))
            place = _match(item, kept)
            if place is None:
                expected = f"{where.part('items').name}: a {kind} of {turn.subject}, as was told"
                types = ", ".join(text(one.get("type")) for one in items_of(where.value))
                actual, places = (
                    f"{where.part('items').name}: {types}",
                    (where.part("items").place,),
                )
                yield Violation(turn.subject, frames, expected, actual, places=places)
                return
            found = kept.pop(place)
            for key in _differing(item, found):
                stored, why = (
                    where.part("items", place, key),
                    f"as item/completed told of the {kind}",
                )
                yield differs(turn.subject, frames, stored, item.get(key), why=why)
                return
        if told:
            yield Witness(turn.subject, frames)


def _differing(item: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The members that an item must have in which two items differ."""
    needed = OTHERS.get(text(item.get("type")), ())
    return [key for key in needed if item.get(key) != other.get(key)]


def _match(item: dict[str, Any], kept: dict[int, dict[str, Any]]) -> int | None:
    """The item among those kept that is this one: by id, else by what it says, else by its type."""
    alike = [at for at, one in kept.items() if one.get("type") == item.get("type")]
    same = [at for at in alike if kept[at].get("id") == item.get("id")]
    equal = [at for at in alike if not _differing(item, kept[at])]
    return next(iter((*same, *equal, *alike)), None)


@rule("history.item-ids", title="Items keep their ids in the history", level=Level.INFO)
class ItemIds(_History):
    """Records whether the messages of a turn have the ids in the history that they had live.

    In the answers to thread/read with includeTurns and thread/resume. Nothing is said about it.
    """

    once = True

    @on_answer("thread/read", "thread/resume")
    def on_history(self, frame: Frame) -> Outcomes:
        shown = stored_in(frame)
        for turn in self.ended(frame) if shown else ():
            where = shown.get(turn.id)
            if where is None or turn.status != COMPLETED or other_messages(turn, where) is not None:
                continue
            told = {item.get("id") for item in completed_items(turn)}
            for at, item in enumerate(items_of(where.value)):
                if item.get("type") not in MESSAGES:
                    continue
                if item.get("id") in told:
                    yield Witness("item ids", (turn.completed[0], frame))
                    continue
                stored = where.part("items", at, "id")
                yield wrong("item ids", (turn.completed[0], frame), stored, "an id that was told")
