"""Rules on thread/read: the answer agrees with the live messages.

A request takes effect between its sending and its answer, so only turns that had certainly ended
before it was sent are expected in the answer.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Monitor, Outcomes, Violation, Witness, on_answer, rule
from harness.judge.rules.shared.live_turns import LiveTurns
from harness.judge.rules.shared.state_tracking import COMPLETED
from harness.judge.rules.shared.stored_turns import MAX_IDS, Rollbacks, compare_turn, stored_turns
from harness.judge.rules.shared.view_queries import opened_here, turns_completed_before
from harness.judge.rules.shared.violations import member, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.order import frames_between, received_before_sent


class _Read(Monitor):
    """Base of rules that compare a successful thread/read with the live turns."""

    def begin(self) -> None:
        self.live_turns = LiveTurns(self.trace, self.conversation)
        self.rollbacks = Rollbacks(self.trace, self.live_turns)

    def facts(self, frame: Frame) -> tuple[Frame, str] | None:
        """Return the request and its thread id; None for an error or a request without one."""
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return None
        thread_id = obj(request.params).get("threadId")
        return (request, thread_id) if isinstance(thread_id, str) else None

    def is_ephemeral(self, thread_id: str, answer: Frame) -> bool:
        """Return whether any message, including this one, showed the thread as ephemeral."""
        is_shown = dig(answer.result, "thread", "ephemeral") is True
        return is_shown or self.live_turns.is_ephemeral(thread_id, answer)


def _with_turns(request: Frame) -> bool:
    return obj(request.params).get("includeTurns") is True


@rule("read.thread-id", title="thread/read returns the requested thread", level=Level.MUST)
class ReadThreadId(Monitor):
    """Judges that the thread in the answer to thread/read has the id of the request.

    Left open: a thread without an id (shapes), rejected reads, requests without a thread id.
    """

    @on_answer("thread/read")
    def on_thread_read_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        read = dig(frame.result, "thread", "id")
        if request is None or request.deliberate or not isinstance(read, str):
            return None
        requested = obj(request.params).get("threadId")
        if not isinstance(requested, str):
            return None
        frames = (request, frame)
        if read == requested:
            return [Witness(f"thread {requested}", frames)]
        field, also = member(frame, "thread", "id"), (member(request, "threadId"),)
        return [wrong(f"thread {requested}", frames, field, literal(requested), also=also)]


@rule("read.includes-turns", title="includeTurns gives the turns", level=Level.MUST)
class IncludesTurns(_Read):
    """Judges that thread/read with includeTurns returns turns if one had ended before.

    Left open: their number, ids and items (read.stored-equals-live), threads without an ended turn,
    ephemeral threads that show none, since they need no rollout history, rejected reads, and reads
    after a rollback. SHOULD if every ended turn was cut off: the specification does not say how
    much of such a turn is stored.
    """

    @on_answer("thread/read")
    def on_thread_read_answer(self, frame: Frame) -> Outcomes:
        facts = self.facts(frame)
        if facts is None or not _with_turns(facts[0]):
            return None
        request, thread_id = facts
        ended = self.live_turns.turns_ended_before(thread_id, request)
        if not ended or self.rollbacks.may_concern(thread_id, frame):
            return None
        frames, subject = (ended[0].completions[0], request, frame), f"thread {thread_id}"
        if arr(dig(frame.result, "thread", "turns")):
            return [Witness(subject, frames)]
        if self.is_ephemeral(thread_id, frame):
            return None
        expected = f"the turns of the thread, {ended[0].id} among them"
        field, also = member(frame, "thread", "turns"), (member(request, "includeTurns"),)
        level = None if any(turn.status == COMPLETED for turn in ended) else Level.SHOULD
        return [wrong(subject, frames, field, expected, level=level, also=also)]


@rule("read.omits-turns", title="Turns come only with includeTurns", level=Level.MUST)
class OmitsTurns(_Read):
    """Judges that thread/read without includeTurns returns no turns ("Thread", turns).

    Absent, null and [] are all right. A thread without an ended turn proves nothing.
    """

    @on_answer("thread/read")
    def on_thread_read_answer(self, frame: Frame) -> Outcomes:
        facts = self.facts(frame)
        if facts is None or _with_turns(facts[0]):
            return None
        request, thread_id = facts
        thread = self.conversation.threads.get(thread_id)
        if thread is None or not opened_here(thread):
            return None
        turns = arr(dig(frame.result, "thread", "turns"))
        if turns:
            field, frames = member(frame, "thread", "turns"), (request, frame)
            return [wrong(thread.subject, frames, field, "none, since includeTurns is not true")]
        ended = turns_completed_before(self.trace, thread, request)
        return [Witness(thread.subject, (request, frame))] if ended else None


@rule("read.stored-equals-live", title="thread/read shows the streamed turns", level=Level.SHOULD)
class StoredEqualsLive(_Read):
    """Judges turns read with includeTurns against the live turns, by turn id.

    Compared, for each turn that had certainly ended before, on any connection: that it is there,
    its status, the message of its error, and the texts of its user and agent messages in order. A
    turn that was cut off may lack some of the agent's text, and may have a message that only began:
    whether that is stored is not shown. If an item id was reused, only the last item need be
    stored. The order of the turns is INFO, since the specification does not mention it. Left open:
    item ids and other types of items (history.items-as-told), turns stored without items (the
    specification contradicts itself there, reading 1), turns that no client saw from their
    beginning, turns that an ephemeral thread does not show, reads after a rollback.
    """

    @on_answer("thread/read")
    def on_thread_read_answer(self, frame: Frame) -> Outcomes:
        facts = self.facts(frame)
        if facts is None or not _with_turns(facts[0]):
            return
        request, thread_id = facts
        stored = stored_turns(frame)
        if not stored or self.rollbacks.may_concern(thread_id, frame):
            return
        ended = self.live_turns.turns_ended_before(thread_id, request)
        for turn in ended:
            if turn.id in stored or not self.is_ephemeral(thread_id, frame):
                violation = compare_turn(turn, stored.get(turn.id), frame)
                yield violation or Witness(turn.subject, (turn.completions[0], frame))
        yield from _in_order(f"thread {thread_id}", frame, [ended_turn.id for ended_turn in ended])


@rule(
    "read.not-resumed",
    title="Reading a thread does not load it",
    level=Level.MUST,
    needs=("subscription",),
)
class NotResumed(Monitor):
    """Judges that a thread that was not loaded is not loaded after thread/read ("thread/read").

    That is known from two answers to thread/loaded/list with the read between them. Left open:
    lists of more than one page, a thread that another request of any client named since the first
    list.
    """

    def begin(self) -> None:
        self._last_list: Frame | None = None
        self._read_answers: dict[str, Frame] = {}
        self._reads: set[Frame] = set()

    @on_answer("thread/read")
    def on_thread_read_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        requested = obj(request.params).get("threadId") if request is not None else None
        self._reads.add(frame)
        if request is None or self._last_list is None or frame.kind is not Kind.RESPONSE:
            return None
        if isinstance(requested, str) and received_before_sent(self._last_list, request):
            self._read_answers.setdefault(requested, frame)
        return None

    @on_answer("thread/loaded/list")
    def on_thread_loaded_list_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        is_first_page = request is not None and not text(obj(request.params).get("cursor"))
        if request is None or not is_first_page or dig(frame.result, "nextCursor") is not None:
            return
        before, self._last_list = self._last_list, frame
        read, self._read_answers = self._read_answers, {}
        now = arr(dig(frame.result, "data"))
        for thread_id, answer in read.items():
            absent = before is not None and thread_id not in arr(dig(before.result, "data"))
            if before is None or not absent or not received_before_sent(answer, request):
                continue
            if self._named_otherwise(thread_id, before, frame):
                continue
            subject, frames = f"thread {thread_id}", (before, answer, frame)
            if thread_id in now:
                field = member(frame, "data", now.index(thread_id))
                expected = f"no {thread_id} among the loaded threads: it was read, not resumed"
                yield unexpected_member(subject, frames, field, expected)
            else:
                yield Witness(subject, frames)

    def _named_otherwise(self, thread_id: str, first: Frame, last: Frame) -> bool:
        """Return whether another request or answer named the thread between two messages."""
        for frame in frames_between(self.trace, first, last):
            if frame.kind is Kind.REQUEST and not frame.from_target:
                if frame.method != "thread/read" and thread_id in obj(frame.params).values():
                    return True
            else:
                notified = dig(frame.params, "thread", "id")
                answered = dig(frame.result, "thread", "id") if frame not in self._reads else None
                if thread_id in (notified, answered):
                    return True
        return False


def _in_order(subject: str, answer: Frame, began: list[str]) -> Iterator[Violation]:
    """Report turns that are not in the order in which they began."""
    stored_ids = list(stored_turns(answer))
    shown_order = [name for name in stored_ids if name in began]
    first = [name for name in began if name in stored_ids]
    if shown_order == first:
        return
    field = member(answer, "thread", "turns")
    yield Violation(
        subject,
        (answer,),
        f"{field.name}: the turns as they began: {', '.join(first[:MAX_IDS])}",
        f"{field.name}: {', '.join(shown_order[:MAX_IDS])}",
        Level.INFO,
        clauses=("thread-read.turns-in-order",),
        places=(field.place,),
    )
