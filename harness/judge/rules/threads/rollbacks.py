"""Rules on thread/rollback: the last turns are dropped, and only they."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.judge.base import Monitor, Outcome, Outcomes, Violation, Witness, on_answer, rule
from harness.judge.rules.shared.state_tracking import COMPLETED
from harness.judge.rules.shared.stored_turns import MAX_IDS, other_messages, stored_in
from harness.judge.rules.shared.told_turns import Told
from harness.judge.rules.shared.view_queries import SentByAnybody, failed
from harness.judge.rules.shared.violations import member
from harness.judge.verdict import Level
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.order import by_arrival, came_before, received_before_sent
from harness.trace.views import TurnView

ROLLBACK, COMPACT = "thread/rollback", "thread/compact/start"


@dataclass(frozen=True, slots=True)
class Cut:
    """A rollback: its answer, the turns that were left, those that it dropped and earlier ones.

    `open` are turns that are one or the other, by what counts as a turn.
    """

    answer: Frame
    left: tuple[TurnView, ...]
    dropped: tuple[TurnView, ...]
    open: tuple[TurnView, ...] = ()

    @property
    def level(self) -> Level | None:
        """Return the level of a finding: less if a turn was cut off, which need not be kept."""
        turns = (*self.left, *self.dropped, *self.open)
        whole = all(turn.status == COMPLETED for turn in turns)
        return None if whole else Level.SHOULD


class _Rollback(Monitor):
    """The remains of a thread after rollbacks, known if all of its turns are."""

    def begin(self) -> None:
        self._told = Told(self.trace, self.conversation)
        self._sent = SentByAnybody(self.trace, ROLLBACK)
        self._compactions = SentByAnybody(self.trace, COMPACT)

    def cut(self, thread_id: str, before: Frame) -> Cut | None:
        """Return what the rollbacks answered before a message left of a thread.

        A turn that no turn/start began (a compaction, for example) may count as one or not: what is
        left or dropped either way is known, the rest is open. So are turns that no answer has shown
        since: a compaction may have done away with them. None where there were no rollbacks, and
        where nothing can be known: a turn that had not ended or whose id was given again, a
        rollback that does not say how many turns it means.
        """
        turns = self._turns(thread_id, before)
        rollbacks = [one for one in self._sent.before(before) if thread_id in _strings(one)]
        if turns is None or not rollbacks:
            return None
        asked_for = [turn for turn in turns if turn.reply is not None]
        most = self._counted(turns, rollbacks, before)
        least = self._counted(asked_for, rollbacks, before)
        if most is None or least is None:
            return None
        others = [turn for turn in turns if turn.reply is None]
        shown = self._shown_since(thread_id, others[-1], most.answer) if others else None
        left = tuple(
            turn
            for turn in asked_for
            if turn in most.left and turn in least.left
            if shown is None
            or turn.id in shown
            or came_before(others[-1].started[0], turn.started[0])
        )
        dropped = tuple(turn for turn in least.dropped if turn in most.dropped)
        rest = tuple(turn for turn in asked_for if turn not in left and turn not in dropped)
        return Cut(most.answer, left, dropped, rest)

    def _counted(self, turns: list[TurnView], rollbacks: list[Frame], before: Frame) -> Cut | None:
        """Return what rollbacks left and dropped if these are the turns that count."""
        left, dropped, last = list[TurnView](), list[TurnView](), None
        waiting = list(turns)
        for request in rollbacks:
            answer, number = self._answer(request, before), _number(request)
            if answer is None or number is None:
                return None
            while waiting and received_before_sent(waiting[0].completed[0], request):
                left.append(waiting.pop(0))
            if failed(answer):
                continue
            if waiting and came_before(waiting[0].started[0], answer):
                return None
            kept = max(0, len(left) - number)
            dropped += left[kept:]
            left, last = left[:kept], answer
        return None if last is None else Cut(last, (*left, *waiting), tuple(dropped))

    def _shown_since(self, thread_id: str, turn: TurnView, before: Frame) -> set[str]:
        """The turns of a thread in the answers that were asked for after a turn had ended."""
        found: set[str] = set()
        for frame in self.trace.frames:
            if frame.kind is not Kind.RESPONSE or not came_before(frame, before):
                continue
            request = self.conversation.request_of(frame)
            mine = text(dig(frame.result, "thread", "id")) == thread_id
            if mine and request and received_before_sent(turn.completed[0], request):
                found |= stored_in(frame).keys()
        return found

    def _turns(self, thread_id: str, before: Frame) -> list[TurnView] | None:
        """The turns of a thread in order, told from start to end; None where some may not be."""
        views = list(self._told.threads(thread_id, before))
        if not any(thread.reply is not None for _, thread in views):
            return None
        every = [turn for _, thread in views for turn in thread.turns.values()]
        asked_for = {turn.id for turn in every if turn.reply is not None}
        found = {
            turn.id: turn
            for turn in every
            if turn.started and turn.completed and (turn.reply or turn.id not in asked_for)
        }
        known = {turn.id for turn in every}
        if self._compacts(thread_id, before, len(found.keys() - asked_for)):
            return None
        if known - found.keys() or any(key.endswith(" again") for key in _keys(views)):
            return None
        first = {turn.started[0]: turn for turn in found.values()}
        return [first[frame] for frame in by_arrival(first)]

    def _compacts(self, thread_id: str, before: Frame, told: int) -> bool:
        """Return whether a compaction was granted, or may be, that is none of so many `told` to the
        end.

        It may be the last turn already, for a server that tells of it after it has answered.
        """
        granted = 0
        for request in self._compactions.before(before):
            answer = self._answer(request, before)
            refused = answer is not None and failed(answer)
            granted += thread_id in _strings(request) and not refused
        return granted > told

    def apart(self, thread_id: str, request: Frame, answer: Frame) -> bool:
        """Return whether no other rollback of a thread was under way between a request and its
        answer.

        Which of two was done first nobody can tell then, whoever is answered first.
        """
        others = (
            self._answer(one, answer)
            for one in self._sent.before(answer)
            if one is not request and thread_id in _strings(one)
        )
        return all(
            other is not None and (failed(other) or received_before_sent(other, request))
            for other in others
        )

    def _answer(self, request: Frame, before: Frame) -> Frame | None:
        """The answer to a rollback, on whichever connection, where it came before a message."""
        for frame in self.trace.frames:
            answers = frame.kind in (Kind.RESPONSE, Kind.ERROR) and frame.from_target
            mine = frame.connection == request.connection and frame.id == request.id
            if answers and mine and came_before(request, frame):
                return frame if frame is before or came_before(frame, before) else None
        return None


def _keys(views: list[Any]) -> Iterator[str]:
    for _, thread in views:
        for turn in thread.turns.values():
            yield turn.key


def _strings(request: Frame) -> set[str]:
    return {value for value in obj(request.params).values() if isinstance(value, str)}


def _number(request: Frame) -> int | None:
    """Return the number of turns of a rollback; its params are not shown: the one number there."""
    values = obj(request.params).values()
    found = [one for one in values if isinstance(one, int | float) and not isinstance(one, bool)]
    number = found[0] if len(found) == 1 else None
    return number if isinstance(number, int) and number > 0 else None


def _shown_otherwise(subject: str, cut: Cut, answer: Frame) -> Violation | None:
    """The finding where an answer shows a turn that was dropped, or not one that was left."""
    shown = stored_in(answer)
    turns = member(answer, "thread", "turns")
    left = [turn.id for turn in cut.left]
    wanted = ", ".join(left[-MAX_IDS:]) or "none"
    expected = f"{turns.name}: the turns that were left: {wanted}"
    for turn in cut.dropped:
        if turn.id in shown and turn.id not in left:
            where = shown[turn.id]
            frames = (turn.completed[0], cut.answer, answer)
            frames = frames if answer is not cut.answer else (turn.completed[0], answer)
            actual, places = f"{where.name}: {turn.subject}, which was dropped", (where.place,)
            return Violation(subject, frames, expected, actual, cut.level, places=places)
    for turn in cut.left:
        if turn.id not in shown:
            frames = (turn.completed[0], cut.answer, answer)
            frames = frames if answer is not cut.answer else (turn.completed[0], answer)
            actual = f"{turns.name}: {', '.join(list(shown)[:MAX_IDS]) or 'none'}"
            places = (turns.place,)
            return Violation(subject, frames, expected, actual, cut.level, places=places)
    return None


@rule(
    "rollback.drops",
    title="A rollback drops the last turns",
    level=Level.MUST,
    needs=("history",),
)
class Drops(_Rollback):
    """Judges the turns in the answer to thread/rollback: all but the last ones, as many as asked.

    The params are not shown: the number of turns is the one number in them. SHOULD where a turn of
    the thread was cut off, since such a turn need not be kept, or count. Left open: refusals; a
    rollback by more turns than there are, which may be refused; whether a turn that no turn/start
    began (a compaction) counts; threads of which some turn may not be known, such as a compaction
    that nobody was told of yet, or one runs; ids that were given again.
    """

    @on_answer(ROLLBACK)
    def on_rollback_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate or frame.kind is not Kind.RESPONSE:
            return None
        for thread_id in self.conversation.threads.keys() & _strings(request):
            cut = self.cut(thread_id, frame)
            if cut is None or cut.answer is not frame:
                continue
            if not self.apart(thread_id, request, frame):
                continue
            subject = f"thread {thread_id}"
            if found := _shown_otherwise(subject, cut, frame):
                return [found]
            if cut.dropped:
                return [Witness(subject, (cut.dropped[-1].completed[0], frame))]
        return None


@rule(
    "rollback.remaining",
    title="After a rollback a thread shows the turns that were left",
    level=Level.SHOULD,
    needs=("history",),
)
class Remaining(_Rollback):
    """Judges the turns that thread/read with includeTurns and thread/resume show after a rollback.

    None that was dropped, all that were left or came later, and their messages as they were told,
    in the answer to the rollback too where the turns have items there. Left open: what
    rollback.drops leaves open; turns that were not ended before the request; answers without turns;
    whether a turn is gone already where the rollback was under way when the turns were asked for.
    """

    @on_answer("thread/read", "thread/resume", ROLLBACK)
    def answer(self, frame: Frame) -> Iterator[Outcome]:
        request = self.conversation.request_of(frame)
        shown = stored_in(frame)
        if request is None or frame.kind is not Kind.RESPONSE or not shown:
            return
        for thread_id in self.conversation.threads.keys() & _strings(request):
            cut = self.cut(thread_id, frame)
            if cut is None or not cut.dropped:
                continue
            subject, own = f"thread {thread_id}", request.method == ROLLBACK
            ended = tuple(
                turn for turn in cut.left if received_before_sent(turn.completed[0], request)
            )
            apart = self.apart(thread_id, request, frame)
            known = Cut(cut.answer, ended, cut.dropped if apart else ())
            found = None if own else _shown_otherwise(subject, known, frame)
            if found is not None:
                yield found
                continue
            differing = [
                one
                for turn in ended
                if turn.id in shown and (one := other_messages(turn, shown[turn.id])) is not None
            ]
            yield from differing
            if apart and not own and not differing:
                yield Witness(subject, (cut.answer, frame))
