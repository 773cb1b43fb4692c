"""Rules on thread/read: what it shows must be what happened.

Here: the answer of thread/read against the request and the turns seen live. A request takes effect
between its sending and its answer, so only turns that had certainly ended before it was sent are
expected in the answer.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Any

from harness.rules.base import Monitor, Outcomes, Violation, Witness, on_answer, rule
from harness.rules.subjects import completed_before, first_completed, opened_here, shown
from harness.rules.verdict import Level
from harness.rules.walks import COMPLETED
from harness.trace.frame import Frame, Kind
from harness.trace.values import MISSING, arr, dig, obj, text
from harness.trace.views import ThreadView, TurnView, items_of, turns_of


class _Read(Monitor):
    """A successful thread/read, its request, and the thread it names."""

    def facts(self, frame: Frame) -> tuple[Frame, ThreadView] | None:
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return None
        thread_id = text(obj(request.params).get("threadId"))
        thread = self.conversation.threads.get(thread_id)
        if thread is None or not opened_here(thread):
            return None
        return request, thread

    def rolled_back(self, thread: ThreadView) -> bool:
        """Whether a rollback may have dropped turns of the thread.

        Its parameters are not shown: any rollback counts unless it names another known thread.
        """
        return any(
            not self._names_another(obj(request.params), thread)
            for request in self.conversation.requests.values()
            if request.method == "thread/rollback"
        )

    def _names_another(self, params: dict[str, Any], thread: ThreadView) -> bool:
        named = {value for value in params.values() if isinstance(value, str)}
        return thread.id not in named and any(
            opened_here(self.conversation.threads.get(value)) for value in named
        )


def _with_turns(request: Frame) -> bool:
    return obj(request.params).get("includeTurns") is True


@rule("read.thread-id", title="thread/read returns the thread asked for", level=Level.MUST)
class ReadThreadId(Monitor):
    """Judges that the thread in the answer has the id of the request.

    Left open: a thread without an id (shapes), refused reads, requests that name no thread.
    """

    @on_answer("thread/read")
    def answer(self, frame: Frame) -> Outcomes:
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
        return [Violation(f"thread {asked}", frames, f"thread {asked}", f"thread {read}")]


@rule("read.includes-turns", title="includeTurns gives the turns", level=Level.MUST)
class IncludesTurns(_Read):
    """Judges that thread/read with includeTurns returns turns when one had ended before.

    Left open: how many, with which ids and items (read.stored-equals-live), threads without an
    ended turn, refused reads, and reads after a rollback.
    """

    @on_answer("thread/read")
    def answer(self, frame: Frame) -> Outcomes:
        facts = self.facts(frame)
        if facts is None or not _with_turns(facts[0]):
            return None
        request, thread = facts
        ended = first_completed(self.trace, thread, request)
        if not ended or self.rolled_back(thread):
            return None
        frames = (ended[0].completed[0], request, frame)
        if arr(dig(frame.result, "thread", "turns")):
            return [Witness(thread.subject, frames)]
        expected = f"the turns of the thread, {ended[0].id} among them"
        actual = f"turns {shown(dig(frame.result, 'thread', 'turns'))}"
        return [Violation(thread.subject, frames, expected, actual)]


@rule("read.omits-turns", title="Turns come only when asked for", level=Level.MUST)
class OmitsTurns(_Read):
    """Judges that thread/read without includeTurns returns no turns ("Thread", turns).

    Absent, null and [] are all right. Right on a thread without an ended turn proves nothing.
    """

    @on_answer("thread/read")
    def answer(self, frame: Frame) -> Outcomes:
        facts = self.facts(frame)
        if facts is None or _with_turns(facts[0]):
            return None
        request, thread = facts
        turns = arr(dig(frame.result, "thread", "turns"))
        if turns:
            actual = f"{len(turns)} turn(s)"
            return [Violation(thread.subject, (request, frame), "no turns", actual)]
        ended = first_completed(self.trace, thread, request)
        return [Witness(thread.subject, (request, frame))] if ended else None


@rule("read.stored-equals-live", title="What is read is what was streamed", level=Level.SHOULD)
class StoredEqualsLive(_Read):
    """Judges turns read with includeTurns against the turns seen live, by turn id.

    Compared, for each turn that had certainly ended before: that it is there, its status, and the
    texts of its user and agent messages in order. Of a turn that was cut off some of what the agent
    said may be missing, since whether that is kept is not shown. Left open: item ids and other
    types of items (stored forms may differ), turns stored without items (the text contradicts
    itself there, reading 1), turns whose beginning was not seen, reads after a rollback.
    """

    @on_answer("thread/read")
    def answer(self, frame: Frame) -> Outcomes:
        facts = self.facts(frame)
        if facts is None or not _with_turns(facts[0]):
            return
        request, thread = facts
        stored = {text(t.get("id")): t for t in turns_of(dig(frame.result, "thread"))}
        if not stored or self.rolled_back(thread):
            return
        for turn in first_completed(self.trace, thread, request):
            if not turn.started or not completed_before(self.trace, turn, request):
                continue
            wrong = _differs(turn, stored.get(turn.id))
            frames = (turn.completed[0], frame)
            if wrong is None:
                yield Witness(turn.subject, frames)
            else:
                yield Violation(turn.subject, frames, *wrong)


def _differs(turn: TurnView, stored: dict[str, Any] | None) -> tuple[str, str] | None:
    """Expected and actual where a stored turn differs from the live one."""
    if stored is None:
        return f"{turn.subject} among the turns", "it is not there"
    if stored.get("status") != turn.status:
        return f"status {turn.status}", f"status {shown(stored.get('status', MISSING))}"
    items = items_of(stored)
    if not items:
        return None
    for kind in ("userMessage", "agentMessage"):
        live = [_said(item) for item in _completed(turn) if item.get("type") == kind]
        kept = [_said(item) for item in items if item.get("type") == kind]
        cut_off = kind == "agentMessage" and turn.status != COMPLETED
        if live != kept and not (cut_off and _some_of(kept, live)):
            return f"{kind} texts {shown(live)}", shown(kept)
    return None


def _some_of(kept: list[Any], live: list[Any]) -> bool:
    """Whether these are some of those, in their order."""
    rest = iter(live)
    return all(any(one == other for other in rest) for one in kept)


def _completed(turn: TurnView) -> list[dict[str, Any]]:
    """The final items of a live turn, in the order of completion."""
    ends = sorted(
        (item.completed[0] for item in turn.items.values() if item.completed),
        key=lambda frame: frame.seq,
    )
    return [obj(dig(frame.params, "item")) for frame in ends]


def _said(item: dict[str, Any]) -> Any:
    if item.get("type") == "agentMessage":
        return item.get("text")
    return [text(part.get("text")) for part in map(obj, arr(item.get("content"))) if "text" in part]
