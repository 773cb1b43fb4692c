"""Rules on thread/rollback: it drops the last turns, and no others."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.judge.base import Monitor, Outcome, Outcomes, Violation, Witness, on_answer, rule
from harness.judge.rules.shared.live_turns import LiveTurns
from harness.judge.rules.shared.state_tracking import COMPLETED
from harness.judge.rules.shared.stored_turns import MAX_IDS, compare_messages, stored_turns
from harness.judge.rules.shared.thread_histories import rolled_back_turns
from harness.judge.rules.shared.view_queries import RequestsOfAllClients, is_failure
from harness.judge.rules.shared.violations import member
from harness.judge.verdict import Level
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.order import by_arrival, came_before, received_before_sent
from harness.trace.views import TurnView

ROLLBACK, COMPACT, BEGIN = "thread/rollback", "thread/compact/start", "turn/start"


@dataclass(frozen=True, slots=True)
class Cut:
    """Result of rollbacks: the last answer, the remaining turns and the dropped ones.

    The `uncertain` turns remain or are dropped, depending on which turns a rollback counts.
    """

    answer: Frame
    remaining: tuple[TurnView, ...]
    dropped_turns: tuple[TurnView, ...]
    uncertain: tuple[TurnView, ...] = ()

    @property
    def level(self) -> Level | None:
        """Return the level of a finding: SHOULD if a turn was cut off and need not be stored."""
        turns = (*self.remaining, *self.dropped_turns, *self.uncertain)
        all_completed = all(turn.status == COMPLETED for turn in turns)
        return None if all_completed else Level.SHOULD


class _Rollback(Monitor):
    """Base of rules on the turns of a thread after rollbacks."""

    def begin(self) -> None:
        self._live_turns = LiveTurns(self.trace, self.conversation)
        self._sent = RequestsOfAllClients(self.trace, ROLLBACK)
        self._compactions = RequestsOfAllClients(self.trace, COMPACT)
        self._begins = RequestsOfAllClients(self.trace, BEGIN)
        self._answers: dict[Frame, Frame] = {}

    def cut_before(self, thread_id: str, before: Frame) -> Cut | None:
        """Return the remaining and dropped turns after the rollbacks answered before a message.

        A turn that no turn/start began (such as a compaction) may or may not count: the turns that
        differ between the two readings are uncertain. So are turns that no answer has shown since:
        a compaction may have removed them. None without rollbacks, and if a turn had not ended, its
        id was reused, a rollback overlapped with a turn/start, or has no number of turns.
        """
        turns = self._turns(thread_id, before)
        rollbacks = [
            request for request in self._sent.before(before) if thread_id in _strings(request)
        ]
        if turns is None or not rollbacks:
            return None
        asked_for = [turn for turn in turns if turn.reply is not None]
        if any(self._may_begin_turn(thread_id, request, before) for request in rollbacks):
            return None
        most = self._apply_rollbacks(turns, rollbacks, before)
        least = self._apply_rollbacks(asked_for, rollbacks, before)
        if most is None or least is None:
            return None
        other_turns = [turn for turn in turns if turn.reply is None]
        shown_ids = (
            self._shown_since(thread_id, other_turns[-1], most.answer) if other_turns else None
        )
        remaining = tuple(
            turn
            for turn in asked_for
            if turn in most.remaining and turn in least.remaining
            if shown_ids is None
            or turn.id in shown_ids
            or came_before(other_turns[-1].starts[0], turn.starts[0])
        )
        dropped = tuple(turn for turn in least.dropped_turns if turn in most.dropped_turns)
        rest = tuple(turn for turn in asked_for if turn not in remaining and turn not in dropped)
        return Cut(most.answer, remaining, dropped, rest)

    def _apply_rollbacks(
        self, turns: list[TurnView], rollbacks: list[Frame], before: Frame
    ) -> Cut | None:
        """Return the remaining and dropped turns if exactly these turns count, else None."""
        remaining, dropped, last = list[TurnView](), list[TurnView](), None
        waiting = list(turns)
        for request in rollbacks:
            answer, number = self._answer(request, before), rolled_back_turns(request)
            if answer is None or number is None:
                return None
            while waiting and received_before_sent(waiting[0].completions[0], request):
                remaining.append(waiting.pop(0))
            if is_failure(answer):
                continue
            if waiting and came_before(waiting[0].starts[0], answer):
                return None
            keep = max(0, len(remaining) - number)
            dropped += remaining[keep:]
            remaining, last = remaining[:keep], answer
        return None if last is None else Cut(last, (*remaining, *waiting), tuple(dropped))

    def _shown_since(self, thread_id: str, turn: TurnView, before: Frame) -> set[str]:
        """Return the ids of a thread's turns in answers that were requested after a turn's end."""
        turn_ids: set[str] = set()
        for frame in self.trace.frames:
            if frame.kind is not Kind.RESPONSE or not came_before(frame, before):
                continue
            request = self.conversation.request_of(frame)
            is_same_thread = text(dig(frame.result, "thread", "id")) == thread_id
            if is_same_thread and request and received_before_sent(turn.completions[0], request):
                turn_ids |= stored_turns(frame).keys()
        return turn_ids

    def _turns(self, thread_id: str, before: Frame) -> list[TurnView] | None:
        """Return the turns of a thread in order, None if some may be unknown."""
        views = list(self._live_turns.thread_views(thread_id, before))
        if not any(thread.reply is not None for _, thread in views):
            return None
        every = [turn for _, thread in views for turn in thread.turns.values()]
        asked_for = {turn.id for turn in every if turn.reply is not None}
        turns = {
            turn.id: turn
            for turn in every
            if turn.starts and turn.completions and (turn.reply or turn.id not in asked_for)
        }
        turn_ids = {turn.id for turn in every}
        if self._may_compact(thread_id, before, len(turns.keys() - asked_for)):
            return None
        if turn_ids - turns.keys() or any(key.endswith(" again") for key in _keys(views)):
            return None
        first = {turn.starts[0]: turn for turn in turns.values()}
        return [first[frame] for frame in by_arrival(first)]

    def _may_compact(self, thread_id: str, before: Frame, compactions_seen: int) -> bool:
        """Return whether more compactions may have been accepted than `compactions_seen`.

        Such a compaction may already be the last turn of a server that reports it late.
        """
        granted = 0
        for request in self._compactions.before(before):
            answer = self._answer(request, before)
            refused = answer is not None and is_failure(answer)
            granted += thread_id in _strings(request) and not refused
        return granted > compactions_seen

    def _may_begin_turn(self, thread_id: str, rollback: Frame, before: Frame) -> bool:
        """Return whether a turn of the thread may have begun while a rollback was open.

        The server may take either request first, whichever it answers first.
        """
        answer = self._answer(rollback, before)
        for begin in self._begins.before(answer) if answer is not None else ():
            begun = self._answer(begin, before)
            if thread_id in _strings(begin) and not (
                begun is not None and (is_failure(begun) or received_before_sent(begun, rollback))
            ):
                return True
        return False

    def is_only_rollback(self, thread_id: str, request: Frame, answer: Frame) -> bool:
        """Return whether no other rollback of a thread overlapped with a request.

        The order of two overlapping ones is unknown, whichever is answered first.
        """
        other_answers = (
            self._answer(frame, answer)
            for frame in self._sent.before(answer)
            if frame is not request and thread_id in _strings(frame)
        )
        return all(
            other is not None and (is_failure(other) or received_before_sent(other, request))
            for other in other_answers
        )

    def _answer(self, request: Frame, before: Frame) -> Frame | None:
        """Return the answer to a request, on any connection, if it came before a message."""
        frame = self._answers.get(request) or self._find_answer(request)
        if frame is None:
            return None
        self._answers[request] = frame
        return frame if frame is before or came_before(frame, before) else None

    def _find_answer(self, request: Frame) -> Frame | None:
        for frame in self.trace.frames:
            answers = frame.kind in (Kind.RESPONSE, Kind.ERROR) and frame.from_target
            is_answer_to_it = frame.connection == request.connection and frame.id == request.id
            if answers and is_answer_to_it and came_before(request, frame):
                return frame
        return None


def _keys(views: list[Any]) -> Iterator[str]:
    for _, thread in views:
        for turn in thread.turns.values():
            yield turn.key


def _strings(request: Frame) -> set[str]:
    return {value for value in obj(request.params).values() if isinstance(value, str)}


def _compare_shown(subject: str, cut: Cut, answer: Frame) -> Violation | None:
    """Return the violation if an answer shows a dropped turn, or lacks a remaining one."""
    stored = stored_turns(answer)
    turns = member(answer, "thread", "turns")
    remaining = [turn.id for turn in cut.remaining]
    last_ids = ", ".join(remaining[-MAX_IDS:]) or "none"
    expected = f"{turns.name}: the turns that were left: {last_ids}"
    for turn in cut.dropped_turns:
        if turn.id in stored and turn.id not in remaining:
            field = stored[turn.id]
            frames = (turn.completions[0], cut.answer, answer)
            frames = frames if answer is not cut.answer else (turn.completions[0], answer)
            actual, places = f"{field.name}: {turn.subject}, which was dropped", (field.place,)
            return Violation(subject, frames, expected, actual, cut.level, places=places)
    for turn in cut.remaining:
        if turn.id not in stored:
            frames = (turn.completions[0], cut.answer, answer)
            frames = frames if answer is not cut.answer else (turn.completions[0], answer)
            actual = f"{turns.name}: {', '.join(list(stored)[:MAX_IDS]) or 'none'}"
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
    """Judges that the answer to thread/rollback lacks the last turns, as many as requested.

    The params are not shown: the number of turns is the only number in them. SHOULD if a turn of
    the thread was cut off, since such a turn need not be stored, or count. Left open: rejections; a
    rollback by more turns than there are, which may be rejected; whether a turn that no turn/start
    began (a compaction) counts; threads with possibly unknown turns, such as an unreported or
    running compaction; reused ids.
    """

    @on_answer(ROLLBACK)
    def on_rollback_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate or frame.kind is not Kind.RESPONSE:
            return None
        for thread_id in self.conversation.threads.keys() & _strings(request):
            cut = self.cut_before(thread_id, frame)
            if cut is None or cut.answer is not frame:
                continue
            if not self.is_only_rollback(thread_id, request, frame):
                continue
            subject = f"thread {thread_id}"
            if violation := _compare_shown(subject, cut, frame):
                return [violation]
            if cut.dropped_turns:
                return [Witness(subject, (cut.dropped_turns[-1].completions[0], frame))]
        return None


@rule(
    "rollback.remaining",
    title="After a rollback a thread shows the remaining turns",
    level=Level.SHOULD,
    needs=("history",),
)
class Remaining(_Rollback):
    """Judges the turns that thread/read with includeTurns and thread/resume show after a rollback.

    They must show no dropped turn, all remaining and later ones, and their messages as live; the
    messages also in the answer to the rollback, if the turns have items there. Left open: as for
    rollback.drops; turns that had not ended before the request; answers without turns; whether a
    turn is already dropped if the rollback overlapped with the request.
    """

    @on_answer("thread/read", "thread/resume", ROLLBACK)
    def on_history(self, frame: Frame) -> Iterator[Outcome]:
        request = self.conversation.request_of(frame)
        stored = stored_turns(frame)
        if request is None or frame.kind is not Kind.RESPONSE or not stored:
            return
        for thread_id in self.conversation.threads.keys() & _strings(request):
            cut = self.cut_before(thread_id, frame)
            if cut is None or not cut.dropped_turns:
                continue
            subject, own = f"thread {thread_id}", request.method == ROLLBACK
            ended = tuple(
                turn for turn in cut.remaining if received_before_sent(turn.completions[0], request)
            )
            apart = self.is_only_rollback(thread_id, request, frame)
            known_cut = Cut(cut.answer, ended, cut.dropped_turns if apart else ())
            violation = None if own else _compare_shown(subject, known_cut, frame)
            if violation is not None:
                yield violation
                continue
            differing = [
                one
                for turn in ended
                if turn.id in stored
                and (one := compare_messages(turn, stored[turn.id])) is not None
            ]
            yield from differing
            if apart and not own and not differing:
                yield Witness(subject, (cut.answer, frame))
