"""Rules on thread/read: what it shows must be what happened.

A request takes effect between its sending and its answer, so only turns that had certainly ended
before it was sent are expected in the answer.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Monitor, Outcomes, Violation, Witness, on_answer, rule
from harness.judge.rules.shared.state_tracking import COMPLETED
from harness.judge.rules.shared.stored_turns import MAX_IDS, Rollbacks, other_than_told, stored_in
from harness.judge.rules.shared.told_turns import Told
from harness.judge.rules.shared.view_queries import first_completed, opened_here
from harness.judge.rules.shared.violations import instead, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.order import frames_between, received_before_sent


class _Read(Monitor):
    """A successful thread/read, its request, and the turns that clients were told of."""

    def begin(self) -> None:
        self.told = Told(self.trace, self.conversation)
        self.rollbacks = Rollbacks(self.trace, self.conversation)

    def facts(self, frame: Frame) -> tuple[Frame, str] | None:
        """The request, and the id of the thread that it names."""
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return None
        thread_id = obj(request.params).get("threadId")
        return (request, thread_id) if isinstance(thread_id, str) else None

    def ephemeral(self, thread_id: str, answer: Frame) -> bool:
        """Return whether any message showed the thread as ephemeral, this one too."""
        shown = dig(answer.result, "thread", "ephemeral") is True
        return shown or self.told.ephemeral(thread_id, answer)


def _with_turns(request: Frame) -> bool:
    return obj(request.params).get("includeTurns") is True


@rule("read.thread-id", title="thread/read returns the thread asked for", level=Level.MUST)
class ReadThreadId(Monitor):
    """Judges that the thread in the answer has the id of the request.

    Left open: a thread without an id (shapes), refused reads, requests that name no thread.
    """

    @on_answer("thread/read")
    def on_thread_read_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        read = dig(frame.result, "thread", "id")
        if request is None or request.deliberate or not isinstance(read, str):
            return None
        asked = obj(request.params).get("threadId")
        if not isinstance(asked, str):
            return None
        frames = (request, frame)
        if read == asked:
            return [Witness(f"thread {asked}", frames)]
        where, also = member(frame, "thread", "id"), (member(request, "threadId"),)
        return [wrong(f"thread {asked}", frames, where, literal(asked), also=also)]


@rule("read.includes-turns", title="includeTurns gives the turns", level=Level.MUST)
class IncludesTurns(_Read):
    """Judges that thread/read with includeTurns returns turns when one had ended before.

    Left open: how many, with which ids and items (read.stored-equals-live), threads without an
    ended turn, ephemeral threads that show none, since they need have no rollout history that
    turns could come from, refused reads, and reads after a rollback. SHOULD where every turn that
    had ended was cut off: how much of such a turn is kept is not said.
    """

    @on_answer("thread/read")
    def on_thread_read_answer(self, frame: Frame) -> Outcomes:
        facts = self.facts(frame)
        if facts is None or not _with_turns(facts[0]):
            return None
        request, thread_id = facts
        ended = self.told.ended_before(thread_id, request)
        if not ended or self.rollbacks.may_concern(thread_id, frame):
            return None
        frames, subject = (ended[0].completed[0], request, frame), f"thread {thread_id}"
        if arr(dig(frame.result, "thread", "turns")):
            return [Witness(subject, frames)]
        if self.ephemeral(thread_id, frame):
            return None
        expected = f"the turns of the thread, {ended[0].id} among them"
        where, also = member(frame, "thread", "turns"), (member(request, "includeTurns"),)
        level = None if any(turn.status == COMPLETED for turn in ended) else Level.SHOULD
        return [wrong(subject, frames, where, expected, level=level, also=also)]


@rule("read.omits-turns", title="Turns come only when asked for", level=Level.MUST)
class OmitsTurns(_Read):
    """Judges that thread/read without includeTurns returns no turns ("Thread", turns).

    Absent, null and [] are all right. Right on a thread without an ended turn proves nothing.
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
            where, frames = member(frame, "thread", "turns"), (request, frame)
            return [wrong(thread.subject, frames, where, "none, since includeTurns is not true")]
        ended = first_completed(self.trace, thread, request)
        return [Witness(thread.subject, (request, frame))] if ended else None


@rule("read.stored-equals-live", title="What is read is what was streamed", level=Level.SHOULD)
class StoredEqualsLive(_Read):
    """Judges turns read with includeTurns against the turns seen live, by turn id.

    Compared, for each turn that had certainly ended before, on whichever connection it was told:
    that it is there, its status, the message of its error, and the texts of its user and agent
    messages in order. Of a turn that was cut off some of what the agent said may be missing, and a
    message that was begun may be there, since whether that is kept is not shown. Of an item id that
    was used again the last item alone may be kept. That the turns stand in the order in which they
    began is INFO, since no word is said of it. Left open: item ids and other types of items
    (history.items-as-told), turns stored without items (the text contradicts itself there, reading
    1), turns that no client was told of from their beginning, turns that an ephemeral thread does
    not show, reads after a rollback.
    """

    @on_answer("thread/read")
    def on_thread_read_answer(self, frame: Frame) -> Outcomes:
        facts = self.facts(frame)
        if facts is None or not _with_turns(facts[0]):
            return
        request, thread_id = facts
        stored = stored_in(frame)
        if not stored or self.rollbacks.may_concern(thread_id, frame):
            return
        ended = self.told.ended_before(thread_id, request)
        for turn in ended:
            if turn.id in stored or not self.ephemeral(thread_id, frame):
                found = other_than_told(turn, stored.get(turn.id), frame)
                yield found or Witness(turn.subject, (turn.completed[0], frame))
        yield from _in_order(f"thread {thread_id}", frame, [one.id for one in ended])


@rule(
    "read.not-resumed",
    title="Reading a thread does not load it",
    level=Level.MUST,
    needs=("subscription",),
)
class NotResumed(Monitor):
    """Judges that a thread that was not loaded is not loaded after thread/read ("thread/read").

    Known from two answers to thread/loaded/list with the read between them. Left open: lists of
    more than one page, a thread that any other request of any client named since the first list.
    """

    def begin(self) -> None:
        self._before: Frame | None = None
        self._read: dict[str, Frame] = {}
        self._reads: set[Frame] = set()

    @on_answer("thread/read")
    def on_thread_read_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        asked = obj(request.params).get("threadId") if request is not None else None
        self._reads.add(frame)
        if request is None or self._before is None or frame.kind is not Kind.RESPONSE:
            return None
        if isinstance(asked, str) and received_before_sent(self._before, request):
            self._read.setdefault(asked, frame)
        return None

    @on_answer("thread/loaded/list")
    def on_thread_loaded_list_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        whole = request is not None and not text(obj(request.params).get("cursor"))
        if request is None or not whole or dig(frame.result, "nextCursor") is not None:
            return
        before, self._before = self._before, frame
        read, self._read = self._read, {}
        now = arr(dig(frame.result, "data"))
        for thread_id, answer in read.items():
            absent = before is not None and thread_id not in arr(dig(before.result, "data"))
            if before is None or not absent or not received_before_sent(answer, request):
                continue
            if self._named_otherwise(thread_id, before, frame):
                continue
            subject, frames = f"thread {thread_id}", (before, answer, frame)
            if thread_id in now:
                where = member(frame, "data", now.index(thread_id))
                expected = f"no {thread_id} among the loaded threads: it was read, not resumed"
                yield instead(subject, frames, where, expected)
            else:
                yield Witness(subject, frames)

    def _named_otherwise(self, thread_id: str, first: Frame, last: Frame) -> bool:
        """Return whether another request of any client named the thread since, or was answered with
        it.
        """
        for frame in frames_between(self.trace, first, last):
            if frame.kind is Kind.REQUEST and not frame.from_target:
                if frame.method != "thread/read" and thread_id in obj(frame.params).values():
                    return True
            else:
                told = dig(frame.params, "thread", "id")
                given = dig(frame.result, "thread", "id") if frame not in self._reads else None
                if thread_id in (told, given):
                    return True
        return False


def _in_order(subject: str, answer: Frame, began: list[str]) -> Iterator[Violation]:
    """Turns that are given in another order than that in which they began."""
    shown = list(stored_in(answer))
    kept = [name for name in shown if name in began]
    first = [name for name in began if name in shown]
    if kept == first:
        return
    where = member(answer, "thread", "turns")
    yield Violation(
        subject,
        (answer,),
        f"{where.name}: the turns as they began: {', '.join(first[:MAX_IDS])}",
        f"{where.name}: {', '.join(kept[:MAX_IDS])}",
        Level.INFO,
        clauses=("thread-read.turns-in-order",),
        places=(where.place,),
    )
