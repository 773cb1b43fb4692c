"""Rules on thread/read: what it shows must be what happened.

Here: the answer of thread/read against the request and the turns seen live. A request takes effect
between its sending and its answer, so only turns that had certainly ended before it was sent are
expected in the answer.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from typing import Any

from harness.judge.base import Monitor, Outcomes, Violation, Witness, on_answer, rule
from harness.judge.verdict import Level
from harness.rules.shared.state_tracking import COMPLETED
from harness.rules.shared.view_queries import (
    SentByAnybody,
    completed_before,
    ephemeral,
    first_completed,
    opened_here,
)
from harness.rules.shared.violations import Member, differs, member, wrong
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.order import by_arrival, came_between
from harness.trace.values import arr, dig, obj, text
from harness.trace.views import ThreadView, TurnView, items_of, turns_of

# So many ids of turns are told.
MOST_IDS = 5


class _Read(Monitor):
    """A successful thread/read, its request, and the thread it names."""

    def begin(self) -> None:
        self._rollbacks = SentByAnybody(self.trace, "thread/rollback")

    def facts(self, frame: Frame) -> tuple[Frame, ThreadView] | None:
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return None
        thread_id = text(obj(request.params).get("threadId"))
        thread = self.conversation.threads.get(thread_id)
        if thread is None or not opened_here(thread):
            return None
        return request, thread

    def rolled_back(self, thread: ThreadView, answer: Frame) -> bool:
        """Whether a rollback, of any client, may have dropped turns of the thread.

        Its parameters are not shown: any rollback counts unless it names another known thread.
        """
        return any(
            not self._names_another(obj(request.params), thread)
            for request in self._rollbacks.before(answer)
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
    def answer(self, frame: Frame) -> Outcomes:
        facts = self.facts(frame)
        if facts is None or not _with_turns(facts[0]):
            return None
        request, thread = facts
        ended = first_completed(self.trace, thread, request)
        if not ended or self.rolled_back(thread, frame):
            return None
        frames = (ended[0].completed[0], request, frame)
        if arr(dig(frame.result, "thread", "turns")):
            return [Witness(thread.subject, frames)]
        if _ephemeral(thread, frame):
            return None
        expected = f"the turns of the thread, {ended[0].id} among them"
        where, also = member(frame, "thread", "turns"), (member(request, "includeTurns"),)
        level = None if any(turn.status == COMPLETED for turn in ended) else Level.SHOULD
        return [wrong(thread.subject, frames, where, expected, level=level, also=also)]


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
            where, frames = member(frame, "thread", "turns"), (request, frame)
            return [wrong(thread.subject, frames, where, "none, since includeTurns is not true")]
        ended = first_completed(self.trace, thread, request)
        return [Witness(thread.subject, (request, frame))] if ended else None


@rule("read.stored-equals-live", title="What is read is what was streamed", level=Level.SHOULD)
class StoredEqualsLive(_Read):
    """Judges turns read with includeTurns against the turns seen live, by turn id.

    Compared, for each turn that had certainly ended before: that it is there, its status, and the
    texts of its user and agent messages in order. Of a turn that was cut off some of what the agent
    said may be missing, and a message that was begun may be there, since whether that is kept is
    not shown. Of an item id that was used again the last item alone may be kept. That the turns
    stand in the order in which they began is INFO, since no word is said of it. Left open: item ids
    and other types of items (stored forms may differ), turns stored without items (the text
    contradicts itself there, reading 1), turns whose beginning was not seen, turns that an
    ephemeral thread does not show, reads after a rollback.
    """

    @on_answer("thread/read")
    def answer(self, frame: Frame) -> Outcomes:
        facts = self.facts(frame)
        if facts is None or not _with_turns(facts[0]):
            return
        request, thread = facts
        turns = enumerate(turns_of(dig(frame.result, "thread")))
        stored = {text(turn.get("id")): member(frame, "thread", "turns", at) for at, turn in turns}
        if not stored or self.rolled_back(thread, frame):
            return
        for turn in first_completed(self.trace, thread, request):
            if not turn.started or not completed_before(self.trace, turn, request):
                continue
            if turn.id not in stored and _ephemeral(thread, frame):
                continue
            found = _other(turn, stored.get(turn.id), frame)
            yield found or Witness(turn.subject, (turn.completed[0], frame))
        yield from _in_order(thread, frame, [name for name in stored if name in thread.turns])


def _ephemeral(thread: ThreadView, answer: Frame) -> bool:
    return ephemeral(thread) or dig(answer.result, "thread", "ephemeral") is True


def _in_order(thread: ThreadView, answer: Frame, stored: list[str]) -> Iterator[Violation]:
    """Turns that are given in another order than that in which they began."""
    turns = [thread.turns[name] for name in stored]
    begun = {turn.started[0]: turn.id for turn in turns if turn.started}
    if len(begun) < len(stored) or list(begun) == by_arrival(begun):
        return
    where = member(answer, "thread", "turns")
    first = [begun[frame] for frame in by_arrival(begun)]
    yield Violation(
        thread.subject,
        (answer,),
        f"{where.name}: the turns as they began: {', '.join(first[:MOST_IDS])}",
        f"{where.name}: {', '.join(stored[:MOST_IDS])}",
        Level.INFO,
        clauses=("thread-read.turns-in-order",),
        places=(where.place,),
    )


def _other(turn: TurnView, where: Member | None, answer: Frame) -> Violation | None:
    """The finding where a stored turn, which stands there, differs from the live one."""
    frames = (turn.completed[0], answer)
    if where is None:
        turns = member(answer, "thread", "turns")
        ids = [text(one.get("id")) for one in turns_of(dig(answer.result, "thread"))]
        more = f" and {len(ids) - MOST_IDS} more" if len(ids) > MOST_IDS else ""
        expected = f"{turns.name}: {turn.subject} among them"
        actual = f"{turns.name}: only the turns {', '.join(ids[:MOST_IDS])}{more}"
        return Violation(turn.subject, frames, expected, actual, places=(turns.place,))
    ended = member(turn.completed[-1], "turn", "status")
    if obj(where.value).get("status") != turn.status:
        status = where.part("status")
        return wrong(turn.subject, frames, status, literal(turn.status), also=(ended,))
    items = items_of(where.value)
    if not items:
        return None
    for kind in ("userMessage", "agentMessage"):
        live = [_said(item) for item in _completed(turn) if item.get("type") == kind]
        last = [_said(item) for item in _completed(turn, last=True) if item.get("type") == kind]
        kept = [_said(item) for item in items if item.get("type") == kind]
        cut_off = kind == "agentMessage" and turn.status != COMPLETED
        begun = sum(item.type == kind and item.is_open for item in turn.items.values())
        if kept not in (live, last) and not (cut_off and _some_of(kept, live, begun)):
            return _other_texts(turn, where, kind, (live, kept))
    return None


def _other_texts(
    turn: TurnView, where: Member, kind: str, texts: tuple[list[Any], list[Any]]
) -> Violation:
    """The finding about the first text of a kind of message that is stored otherwise."""
    live, kept = texts
    first = next(
        (at for at, (one, other) in enumerate(zip(live, kept, strict=False)) if one != other),
        min(len(live), len(kept)),
    )
    places = [at for at, item in enumerate(items_of(where.value)) if item.get("type") == kind]
    frames = (turn.completed[0], where.frame)
    said = f"what was said live, as the text of {kind} {first + 1} of {len(live)}"
    if first >= min(len(live), len(kept)):
        expected = f"{where.part('items').name}: {len(live)} {kind}(s) of {turn.subject}, as live"
        missing = f"the first that is missing: {literal(live[first])}" if first < len(live) else ""
        extra = f"the first beyond: {literal(kept[first])}" if first < len(kept) else ""
        actual = f"{where.part('items').name}: {len(kept)} of them; {missing or extra}"
        place = where.part("items").place
        return Violation(turn.subject, frames, expected, actual, places=(place,))
    key = "text" if kind == "agentMessage" else "content"
    stored = where.part("items", places[first], key)
    return differs(turn.subject, frames, stored, live[first], found=kept[first], why=said)


def _some_of(kept: list[Any], live: list[Any], begun: int) -> bool:
    """Whether these are some of those, in their order, and so many others that were only begun."""
    rest = list(live)
    for one in kept:
        if one in rest:
            rest = rest[rest.index(one) + 1 :]
        elif begun:
            begun -= 1
        else:
            return False
    return True


def _completed(turn: TurnView, *, last: bool = False) -> list[dict[str, Any]]:
    """The final items of a live turn, in the order of completion.

    An id that was started again after its completion is another item; with `last` it is that alone.
    """
    found: list[Frame] = []
    for item in turn.items.values():
        ends = [
            end
            for before, end in zip([None, *item.completed], item.completed, strict=False)
            if before is None or any(came_between(before, begin, end) for begin in item.started)
        ]
        found += ends[-1:] if last else ends
    return [obj(dig(frame.params, "item")) for frame in by_arrival(found)]


def _said(item: dict[str, Any]) -> Any:
    if item.get("type") == "agentMessage":
        return item.get("text")
    return [text(part.get("text")) for part in map(obj, arr(item.get("content"))) if "text" in part]
