"""Rules on thread/fork: a new thread, announced once, with a copy of the history."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from dataclasses import replace

from harness.judge.base import (
    Monitor,
    Outcome,
    Outcomes,
    Violation,
    Witness,
    on,
    on_answer,
    on_harness_message,
    rule,
)
from harness.judge.rules.shared.live_turns import LiveTurns
from harness.judge.rules.shared.state_tracking import COMPLETED, ENDINGS
from harness.judge.rules.shared.stored_turns import Rollbacks, compare_turn, stored_turns
from harness.judge.rules.shared.view_queries import (
    connection_suffix,
    describe_silence,
    has_other_clients,
)
from harness.judge.rules.shared.violations import Member, member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.obligations import ObligationKind
from harness.trace.order import came_before
from harness.trace.views import TurnView, turns_of

FORK = "thread/fork"
# Requests after which a thread may be announced again.
REOPENING = methods_with("may-reload")
# Requests that leave the history of every thread as it is.
_HARMLESS = frozenset(
    {"thread/read", "thread/list", "thread/loaded/list", "thread/name/set", "thread/resume", FORK}
)


@rule("fork.new-id", title="A fork has an id of its own", level=Level.MUST, needs=("history",))
class NewId(Monitor):
    """Judges that the answer to thread/fork shows a thread with a new id.

    Left open: a thread without an id (shapes); ids of other threads (thread.ids-unique).
    """

    @on_answer(FORK)
    def on_fork_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        returned = dig(frame.result, "thread", "id")
        if request is None or request.deliberate or not isinstance(returned, str):
            return None
        requested, frames = obj(request.params).get("threadId"), (request, frame)
        if returned != requested:
            return [Witness(f"thread {returned}", frames)]
        field, also = member(frame, "thread", "id"), (member(request, "threadId"),)
        return [wrong(f"thread {returned}", frames, field, "a new id", also=also)]


@rule("fork.announced", title="A fork is announced once", level=Level.MUST, needs=("history",))
class ForkAnnounced(Monitor):
    """Judges that thread/fork emits exactly one thread/started, with the id of the reply.

    The notification may come before or after the reply. Left open: forks of other clients in a
    shared process, and repeated announcements of a fork that was archived, closed or resumed.
    """

    @on_answer(FORK)
    def on_fork_answer(self, frame: Frame) -> Outcomes:
        return self._judge(text(dig(frame.result, "thread", "id")))

    @on("thread/started")
    def on_thread_started(self, frame: Frame) -> Outcomes:
        return self._judge(text(dig(frame.params, "thread", "id")))

    def finish(self) -> Outcomes:
        for item in self.owed.open_obligations(ObligationKind.THREAD_STARTED):
            if self._is_fork(item.frame):
                suffix = connection_suffix(self.trace, item.frame)
                expected = f"thread/started for {item.subject}, a fork{suffix}"
                places, actual = (
                    (member(item.frame, "thread", "id").place,),
                    describe_silence(self.trace),
                )
                yield Violation(item.subject, (item.frame,), expected, actual, places=places)

    def _is_fork(self, answer: Frame) -> bool:
        request = self.conversation.request_of(answer)
        return request is not None and request.method == FORK

    def _judge(self, thread_id: str) -> Outcomes:
        thread = self.conversation.threads.get(thread_id)
        forks = (
            [answer for answer in thread.opening_answers if self._is_fork(answer)]
            if thread is not None
            else []
        )
        if thread is None or not forks or not thread.starts or thread.reply is not None:
            return None
        if len(thread.starts) == 1:
            return [Witness(thread.subject, (forks[0], thread.starts[0]))]
        if any(
            request.method in REOPENING
            and text(obj(request.params).get("threadId")) in ("", thread_id)
            for request in self.conversation.requests
        ):
            return None
        expected, actual = f"one thread/started for {thread.subject}", f"{len(thread.starts)}"
        places = tuple(member(notification, "thread", "id").place for notification in thread.starts)
        frames = tuple(thread.starts)
        return [Violation(thread.subject, frames, expected, f"{actual} of them", places=places)]


@rule(
    "fork.copies-history",
    title="A fork has the turns of its thread",
    level=Level.MUST,
    needs=("history",),
)
class CopiesHistory(Monitor):
    """Judges the turns in the answer to thread/fork against the live turns of the source.

    Compared, for each turn that had certainly ended before the request: that the copy has it, its
    status, the message of its error, and the texts of its user and agent messages in order. The
    turns of a copy may have new ids: then they are compared by position or, if the source was not
    started in the trace and may have other turns, by content. SHOULD for a turn that was cut off,
    except its status: the specification does not say how much of it is stored. A copy has as many
    turns as the last thread/read or thread/resume showed, if all had ended and nothing was done
    with the thread since; also turns that an earlier process ran. Left open: a running turn; forks
    without any turn (thread.history-shown); turns without items (turn.items-filled); other types of
    items; forks after a rollback; forks of an ephemeral thread.
    """

    def begin(self) -> None:
        self._shown: dict[str, Frame] = {}
        self._live_turns = LiveTurns(self.trace, self.conversation)
        self._rollbacks = Rollbacks(self.trace, self._live_turns)

    @on_answer("thread/read", "thread/resume")
    def on_history(self, frame: Frame) -> Outcomes:
        thread = obj(dig(frame.result, "thread"))
        turns = turns_of(thread)
        thread_id = text(thread.get("id"))
        if turns and all(turn.get("status") in ENDINGS for turn in turns):
            self._shown[thread_id] = frame
        return None

    @on_harness_message
    def on_request(self, frame: Frame) -> Outcomes:
        """Forget the history that a request about its thread, or about none, may change."""
        if frame.kind is Kind.REQUEST and frame.method not in _HARMLESS:
            named = obj(frame.params).get("threadId")
            for thread_id in [name for name in self._shown if named in (None, name)]:
                del self._shown[thread_id]
        return None

    def _compare_with_shown(self, source: str, request: Frame, frame: Frame) -> Outcomes:
        """Judge that a copy has as many turns as its thread was shown with."""
        shown, copies = self._shown.get(source), stored_turns(frame)
        if shown is None or not copies or len(obj(request.params)) > 1:
            return
        is_later = self.trace.before(shown, request) is True
        active = any(
            came_before(shown, start) or not turn.completions
            for turn in self.conversation.thread(source).turns.values()
            for start in turn.starts
        )
        if not is_later or active or has_other_clients(self.trace, frame):
            return
        if self._live_turns.is_ephemeral(source, frame):
            return
        turns = member(shown, "thread", "turns")
        count = len(turns_of(obj(dig(shown.result, "thread"))))
        if len(copies) < count:
            fork = f"thread {text(dig(frame.result, 'thread', 'id'))}"
            expected = f"the {count} turns of its thread, as they were shown before"
            field = member(frame, "thread", "turns")
            yield wrong(fork, (shown, frame), field, expected, also=(turns,))

    @on_answer(FORK)
    def on_fork_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        source = text(obj(request.params).get("threadId"))
        yield from self._compare_with_shown(source, request, frame) or ()
        ended, stored = self._live_turns.turns_ended_before(source, request), stored_turns(frame)
        if not ended or not stored or self._rollbacks.may_concern(source, frame):
            return
        if self._live_turns.is_ephemeral(source, frame):
            return
        fork = f"thread {text(dig(frame.result, 'thread', 'id'))}"
        views = list(self._live_turns.thread_views(source, frame))
        turn_ids = {turn.id for _, thread in views for turn in thread.turns.values()}
        # If one of them may not have ended, positions prove nothing.
        is_complete = turn_ids == {turn.id for turn in ended}
        is_complete = is_complete and any(thread.reply is not None for _, thread in views)
        for turn, copy in _pairs(ended, stored, frame, complete=is_complete):
            yield from self._compare(fork, turn, copy, frame)

    def _compare(
        self, fork: str, turn: TurnView, field: Member | None, frame: Frame
    ) -> Iterator[Outcome]:
        violation = compare_turn(turn, field, frame)
        if violation is None:
            yield Witness(fork, (turn.completions[0], frame))
        else:
            shown = None if field is None else obj(field.value).get("status")
            is_status = shown in ENDINGS and shown != turn.status
            level = None if turn.status == COMPLETED or is_status else Level.SHOULD
            yield replace(violation, subject=fork, level=level)


def _pairs(
    ended: list[TurnView], stored: dict[str, Member], answer: Frame, *, complete: bool
) -> Iterator[tuple[TurnView, Member | None]]:
    """Yield each live turn with its copy, None if it is missing.

    They are matched by id, or by position if all ids are new. If some turns of the thread may be
    unknown, so `complete` is false, they are matched by content.
    """
    copies = list(stored.values())
    for place, turn in enumerate(ended):
        if any(other.id in stored for other in ended):
            yield turn, stored.get(turn.id)
        elif complete:
            yield turn, copies[place] if place < len(copies) else None
        else:
            same_text = (copy for copy in copies if compare_turn(turn, copy, answer) is None)
            yield turn, next(same_text, None)
