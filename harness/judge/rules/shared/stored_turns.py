"""Comparison of a turn that an answer shows later with the turn that was told live."""

from typing import Any, cast

from harness.judge.base import Violation
from harness.judge.rules.shared.state_tracking import COMPLETED
from harness.judge.rules.shared.view_queries import SentByAnybody, opened_here
from harness.judge.rules.shared.violations import Member, differs, member, wrong
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.order import by_arrival, came_between
from harness.trace.trace import Trace
from harness.trace.views import Conversation, TurnView, items_of, turns_of

# So many ids of turns are told.
MAX_IDS = 5
# The types of items whose texts are the conversation itself.
MESSAGES = ("userMessage", "agentMessage")


class Rollbacks:
    """The requests of any client that may have dropped turns."""

    def __init__(self, trace: Trace, conversation: Conversation) -> None:
        self._sent = SentByAnybody(trace, "thread/rollback")
        self._conversation = conversation

    def may_concern(self, thread_id: str, answer: Frame) -> bool:
        """Return whether turns of a thread may have been dropped before an answer.

        The params are not shown: any rollback counts unless it names another known thread.
        """
        return any(
            not self._names_another(obj(request.params), thread_id)
            for request in self._sent.before(answer)
        )

    def _names_another(self, params: dict[str, Any], thread_id: str) -> bool:
        named = {value for value in params.values() if isinstance(value, str)}
        return thread_id not in named and any(
            opened_here(self._conversation.threads.get(value)) for value in named
        )


def stored_in(answer: Frame) -> dict[str, Member]:
    """The turns of the thread that an answer shows, by their ids, and where each stands."""
    turns = enumerate(turns_of(dig(answer.result, "thread")))
    return {text(turn.get("id")): member(answer, "thread", "turns", at) for at, turn in turns}


def other_than_told(turn: TurnView, where: Member | None, answer: Frame) -> Violation | None:
    """The finding where a turn that an answer shows differs from the live one.

    `where` is the place at which it stands, None where it stands nowhere. Compared are its status,
    the message of its error, and the texts of its user and agent messages, in order. A turn that
    stands there without items is not compared further.
    """
    frames = (turn.completed[0], answer)
    if where is None:
        turns = member(answer, "thread", "turns")
        ids = [text(one.get("id")) for one in turns_of(dig(answer.result, "thread"))]
        more = f" and {len(ids) - MAX_IDS} more" if len(ids) > MAX_IDS else ""
        expected = f"{turns.name}: {turn.subject} among them"
        actual = f"{turns.name}: only the turns {', '.join(ids[:MAX_IDS])}{more}"
        return Violation(turn.subject, frames, expected, actual, places=(turns.place,))
    ended = member(turn.completed[-1], "turn", "status")
    if obj(where.value).get("status") != turn.status:
        status = where.part("status")
        return wrong(turn.subject, frames, status, literal(turn.status), also=(ended,))
    failure, kept_failure = (
        member(turn.completed[-1], "turn", "error", "message"),
        where.part("error", "message"),
    )
    both = isinstance(failure.value, str) and isinstance(kept_failure.value, str)
    if both and failure.value != kept_failure.value:
        why = "as the end of the turn said"
        return differs(turn.subject, frames, kept_failure, failure.value, why=why)
    return other_messages(turn, where)


def other_messages(turn: TurnView, where: Member) -> Violation | None:
    """The finding where the messages of a turn that is shown with items differ from the live ones.

    Of a turn that was cut off some of what the agent said may be missing, and a message that was
    begun may be there. Of an item id that was used again the last item alone may be kept. The texts
    of a message of the user may be kept as one.
    """
    items = items_of(where.value)
    if not items:
        return None
    for kind in MESSAGES:
        live = [_said(item) for item in completed_items(turn) if item.get("type") == kind]
        last = [
            _said(item) for item in completed_items(turn, last=True) if item.get("type") == kind
        ]
        kept = [_said(item) for item in items if item.get("type") == kind]
        cut_off = kind == "agentMessage" and turn.status != COMPLETED
        begun = sum(item.type == kind and item.is_open for item in turn.items.values())
        same = _all_same(kept, live) or _all_same(kept, last)
        if not same and not (cut_off and _some_of(kept, live, begun)):
            return _other_texts(turn, where, kind, (live, kept))
    return None


def _other_texts(
    turn: TurnView, where: Member, kind: str, texts: tuple[list[Any], list[Any]]
) -> Violation:
    """The finding about the first text of a kind of message that is stored otherwise."""
    live, kept = texts
    first = next(
        (
            at
            for at, (one, other) in enumerate(zip(live, kept, strict=False))
            if not _same(one, other)
        ),
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


def _all_same(kept: list[Any], live: list[Any]) -> bool:
    return len(kept) == len(live) and all(map(_same, kept, live))


def _same(one: Any, other: Any) -> bool:
    """Return whether two messages say the same; the texts of the user's may be kept as one."""
    if not isinstance(one, list) or not isinstance(other, list) or one == other:
        return bool(one == other)
    parts = cast("list[str]", one), cast("list[str]", other)
    joined = [{between.join(each) for between in ("", " ", "\n")} for each in parts]
    return not joined[0].isdisjoint(joined[1])


def _some_of(kept: list[Any], live: list[Any], begun: int) -> bool:
    """Return whether these are some of those, in their order, and so many others that were only
    begun.
    """
    rest = list(live)
    for one in kept:
        if one in rest:
            rest = rest[rest.index(one) + 1 :]
        elif begun:
            begun -= 1
        else:
            return False
    return True


def completed_items(turn: TurnView, *, last: bool = False) -> list[dict[str, Any]]:
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
