"""Rules on the history that thread/resume and thread/fork show: it is what was streamed.

Here: that turns are shown, with their items, and that these are those that were told. Not here:
what thread/read shows (reads), how the turns of a fork differ (forking), rollbacks (rollbacks), and
what a client is told that comes in the middle of a turn (attaching).
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Monitor, Outcomes, Witness, on_answer, rule
from harness.judge.verdict import Level
from harness.rules.shared.state_tracking import COMPLETED, RUNNING
from harness.rules.shared.stored_turns import Rollbacks, other_than_told, stored_in
from harness.rules.shared.told_turns import Told
from harness.rules.shared.violations import member, wrong
from harness.trace.frame import Frame, Kind
from harness.trace.values import arr, dig, obj, text
from harness.trace.views import TurnView

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
    def answer(self, frame: Frame) -> Outcomes:
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
    def answer(self, frame: Frame) -> Outcomes:
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
    def answer(self, frame: Frame) -> Outcomes:
        stored = stored_in(frame)
        for turn in self.ended(frame) if stored else ():
            found = other_than_told(turn, stored.get(turn.id), frame)
            yield found or Witness(turn.subject, (turn.completed[0], frame))
