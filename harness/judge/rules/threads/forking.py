"""Rules on thread/fork: a new thread, announced once, with a copy of the history."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from dataclasses import replace

from harness.judge.base import Monitor, Outcome, Outcomes, Violation, Witness, on, on_answer, rule
from harness.judge.rules.shared.state_tracking import COMPLETED
from harness.judge.rules.shared.stored_turns import Rollbacks, other_than_told, stored_in
from harness.judge.rules.shared.told_turns import Told
from harness.judge.rules.shared.view_queries import never_came, on_connection
from harness.judge.rules.shared.violations import Member, member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.owed import Owes
from harness.trace.views import TurnView

FORK = "thread/fork"
# After these a thread may be announced anew.
REOPENING = methods_with("may-reload")


@rule("fork.new-id", title="A fork has an id of its own", level=Level.MUST, needs=("history",))
class NewId(Monitor):
    """Judges that the thread in the answer to thread/fork is another one than was asked for.

    Left open: a thread without an id (shapes); ids of other threads (thread.ids-unique).
    """

    @on_answer(FORK)
    def on_fork_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        given = dig(frame.result, "thread", "id")
        if request is None or request.deliberate or not isinstance(given, str):
            return None
        asked, frames = obj(request.params).get("threadId"), (request, frame)
        if given != asked:
            return [Witness(f"thread {given}", frames)]
        where, also = member(frame, "thread", "id"), (member(request, "threadId"),)
        return [wrong(f"thread {given}", frames, where, "a new id", also=also)]


@rule("fork.announced", title="A fork is announced once", level=Level.MUST, needs=("history",))
class ForkAnnounced(Monitor):
    """Judges that thread/fork emits exactly one thread/started, with the id of the reply.

    The notification may come before or after the reply. Left open: forks of others in a shared
    process, and how often a fork is announced that was put away or reopened.
    """

    @on_answer(FORK)
    def on_fork_answer(self, frame: Frame) -> Outcomes:
        return self._judge(text(dig(frame.result, "thread", "id")))

    @on("thread/started")
    def on_thread_started(self, frame: Frame) -> Outcomes:
        return self._judge(text(dig(frame.params, "thread", "id")))

    def finish(self) -> Outcomes:
        for item in self.owed.open(Owes.THREAD_STARTED):
            if self._is_fork(item.frame):
                where = on_connection(self.trace, item.frame)
                expected = f"thread/started for {item.subject}, a fork{where}"
                places, actual = (member(item.frame, "thread", "id").place,), never_came(self.trace)
                yield Violation(item.subject, (item.frame,), expected, actual, places=places)

    def _is_fork(self, answer: Frame) -> bool:
        request = self.conversation.request_of(answer)
        return request is not None and request.method == FORK

    def _judge(self, thread_id: str) -> Outcomes:
        thread = self.conversation.threads.get(thread_id)
        forks = [one for one in thread.opened if self._is_fork(one)] if thread is not None else []
        if thread is None or not forks or not thread.started or thread.reply is not None:
            return None
        if len(thread.started) == 1:
            return [Witness(thread.subject, (forks[0], thread.started[0]))]
        if any(
            request.method in REOPENING
            and text(obj(request.params).get("threadId")) in ("", thread_id)
            for request in self.conversation.requests
        ):
            return None
        expected, actual = f"one thread/started for {thread.subject}", f"{len(thread.started)}"
        places = tuple(member(one, "thread", "id").place for one in thread.started)
        frames = tuple(thread.started)
        return [Violation(thread.subject, frames, expected, f"{actual} of them", places=places)]


@rule(
    "fork.copies-history",
    title="A fork has the turns of its thread",
    level=Level.MUST,
    needs=("history",),
)
class CopiesHistory(Monitor):
    """Judges the turns in the answer to thread/fork against those told of the forked thread.

    Compared, for each turn that had certainly ended before the fork was asked for: that the copy
    has it, its status, the message of its error, and the texts of its user and agent messages in
    order. The turns of a copy may have new ids: then they are compared in their order, or where the
    forked thread was not started here, and may have other turns, with the one that says the same.
    SHOULD for a turn that was cut off, of which it is not said how much is kept. Left open: a turn
    that was running, which may be there or not; forks without any turn (thread.history-shown);
    turns without items (turn.items-filled); other types of items; forks after a rollback; forks of
    an ephemeral thread.
    """

    def begin(self) -> None:
        self._told = Told(self.trace, self.conversation)
        self._rollbacks = Rollbacks(self.trace, self.conversation)

    @on_answer(FORK)
    def on_fork_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        source = text(obj(request.params).get("threadId"))
        ended, shown = self._told.ended_before(source, request), stored_in(frame)
        if not ended or not shown or self._rollbacks.may_concern(source, frame):
            return
        if self._told.ephemeral(source, frame):
            return
        fork = f"thread {text(dig(frame.result, 'thread', 'id'))}"
        views = list(self._told.threads(source, frame))
        known = {turn.id for _, thread in views for turn in thread.turns.values()}
        # Where one of them is not among those that certainly ended, places say nothing.
        whole = known == {turn.id for turn in ended}
        whole = whole and any(thread.reply is not None for _, thread in views)
        for turn, where in _pairs(ended, shown, frame, whole=whole):
            yield from self._compared(fork, turn, where, frame)

    def _compared(
        self, fork: str, turn: TurnView, where: Member | None, frame: Frame
    ) -> Iterator[Outcome]:
        found = other_than_told(turn, where, frame)
        if found is None:
            yield Witness(fork, (turn.completed[0], frame))
        else:
            level = None if turn.status == COMPLETED else Level.SHOULD
            yield replace(found, subject=fork, level=level)


def _pairs(
    ended: list[TurnView], shown: dict[str, Member], answer: Frame, *, whole: bool
) -> Iterator[tuple[TurnView, Member | None]]:
    """Each turn that was told with its copy.

    By its id, or where all ids are new by its place; by what it says where the thread may have
    turns that were not told, so that it is not the `whole` of it.
    """
    copies = list(shown.values())
    for place, turn in enumerate(ended):
        if any(one.id in shown for one in ended):
            yield turn, shown.get(turn.id)
        elif whole:
            yield turn, copies[place] if place < len(copies) else None
        else:
            alike = (one for one in copies if other_than_told(turn, one, answer) is None)
            yield turn, next(alike, None)
