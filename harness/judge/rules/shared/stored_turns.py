"""Comparison of a stored turn, as a later answer shows it, with the live turn."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from harness.judge.base import Violation
from harness.judge.rules.shared.live_turns import LiveTurns
from harness.judge.rules.shared.state_tracking import COMPLETED
from harness.judge.rules.shared.view_queries import RequestsOfAllClients, opened_here
from harness.judge.rules.shared.violations import Member, different, member, wrong
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.order import by_arrival, came_between
from harness.trace.trace import Trace
from harness.trace.views import TurnView, items_of, turns_of

# Turn ids shown in a finding.
MAX_IDS = 5
# The item types whose texts are the conversation itself.
MESSAGES = ("userMessage", "agentMessage")


class Rollbacks:
    """Requests of any client that may have dropped turns."""

    def __init__(self, trace: Trace, live_turns: LiveTurns) -> None:
        self._sent = RequestsOfAllClients(trace, "thread/rollback")
        self._live_turns = live_turns

    def may_concern(self, thread_id: str, answer: Frame) -> bool:
        """Return whether turns of a thread may have been dropped before an answer.

        The params are not shown: any rollback counts unless it names another thread that some
        client has opened.
        """
        return any(
            not self._names_another(obj(request.params), thread_id, answer)
            for request in self._sent.before(answer)
        )

    def _names_another(self, params: dict[str, Any], thread_id: str, answer: Frame) -> bool:
        ids = {value for value in params.values() if isinstance(value, str)}
        views = self._live_turns.views(answer)
        return thread_id not in ids and any(
            opened_here(view.threads.get(value)) for view in views for value in ids
        )


def stored_turns(answer: Frame) -> dict[str, Member]:
    """Return the turns of the thread in an answer as members, by id."""
    turns = enumerate(turns_of(dig(answer.result, "thread")))
    return {text(turn.get("id")): member(answer, "thread", "turns", index) for index, turn in turns}


def compare_turn(turn: TurnView, field: Member | None, answer: Frame) -> Violation | None:
    """Return the violation if a turn in an answer differs from the live one, else None.

    `field` is the turn in the answer, None if it is missing. Compared are its status, the message
    of its error, and the texts of its user and agent messages, in order. A turn without items is
    not compared further.
    """
    frames = (turn.completions[0], answer)
    if field is None:
        turns = member(answer, "thread", "turns")
        ids = [
            text(stored_turn.get("id")) for stored_turn in turns_of(dig(answer.result, "thread"))
        ]
        more = f" and {len(ids) - MAX_IDS} more" if len(ids) > MAX_IDS else ""
        expected = f"{turns.name}: {turn.subject} among them"
        actual = f"{turns.name}: only the turns {', '.join(ids[:MAX_IDS])}{more}"
        return Violation(turn.subject, frames, expected, actual, places=(turns.place,))
    ended = member(turn.completions[-1], "turn", "status")
    if obj(field.value).get("status") != turn.status:
        status = field.part("status")
        return wrong(turn.subject, frames, status, literal(turn.status), also=(ended,))
    failure, kept_failure = (
        member(turn.completions[-1], "turn", "error", "message"),
        field.part("error", "message"),
    )
    both = isinstance(failure.value, str) and isinstance(kept_failure.value, str)
    if both and failure.value != kept_failure.value:
        reason = "as the end of the turn said"
        return different(turn.subject, frames, kept_failure, failure.value, reason=reason)
    return compare_messages(turn, field)


def compare_messages(turn: TurnView, field: Member) -> Violation | None:
    """Return the violation if the stored messages of a turn differ from the live ones, else None.

    An interrupted turn may lack some of the agent's text and have messages that only began. If an
    item id was reused, only the last item need be stored. The texts of a user message may be stored
    as one. Messages that overlapped are stored in the order of their beginnings or their ends. A
    server that streams no user messages (left open) still stores them.
    """
    items = items_of(field.value)
    if not items:
        return None
    for kind in MESSAGES:
        live = _texts(completed_items(turn), kind)
        if kind == "userMessage" and not live:
            continue
        stored = _texts(items, kind)
        cut_off = kind == "agentMessage" and turn.status != COMPLETED
        open_items = sum(item.type == kind and item.is_open for item in turn.items.values())
        same = any(_all_same(stored, order) for order in _possible_orders(turn, kind, live))
        if not same and not (cut_off and _is_part_of(stored, live, open_items)):
            return _text_violation(turn, field, kind, (live, stored))
    return None


def _possible_orders(turn: TurnView, kind: str, live: list[Any]) -> Iterator[list[Any]]:
    """Yield the orders in which the texts of a kind may be stored, the most likely first."""
    yield live
    finals = (completed_items(turn, last=True), _items_by_start(turn))
    others = [_texts(final, kind) for final in finals]
    yield from others
    if kind == "userMessage" and turn.request is not None:
        first = _user_texts(obj(turn.request.params).get("input"))
        yield from ([first, *order] for order in (live, *others) if first not in order)


def _text_violation(
    turn: TurnView, field: Member, kind: str, texts: tuple[list[Any], list[Any]]
) -> Violation:
    """Return the violation about the first stored text that differs."""
    live, stored_texts = texts
    first = next(
        (
            index
            for index, (live_text, other) in enumerate(zip(live, stored_texts, strict=False))
            if not _is_same(live_text, other)
        ),
        min(len(live), len(stored_texts)),
    )
    places = [index for index, item in enumerate(items_of(field.value)) if item.get("type") == kind]
    frames = (turn.completions[0], field.frame)
    reason = f"what was said live, as the text of {kind} {first + 1} of {len(live)}"
    if first >= min(len(live), len(stored_texts)):
        expected = f"{field.part('items').name}: {len(live)} {kind}(s) of {turn.subject}, as live"
        missing = f"the first that is missing: {literal(live[first])}" if first < len(live) else ""
        extra = (
            f"the first beyond: {literal(stored_texts[first])}" if first < len(stored_texts) else ""
        )
        actual = f"{field.part('items').name}: {len(stored_texts)} of them; {missing or extra}"
        place = field.part("items").place
        return Violation(turn.subject, frames, expected, actual, places=(place,))
    key = "text" if kind == "agentMessage" else "content"
    stored = field.part("items", places[first], key)
    return different(
        turn.subject, frames, stored, live[first], value=stored_texts[first], reason=reason
    )


def _all_same(stored: list[Any], live: list[Any]) -> bool:
    return len(stored) == len(live) and all(map(_is_same, stored, live))


def _is_same(message: Any, other: Any) -> bool:
    """Return whether two messages have the same text; a user's texts may be stored as one."""
    if not isinstance(message, list) or not isinstance(other, list) or message == other:
        return bool(message == other)
    parts = cast("list[str]", message), cast("list[str]", other)
    joined = [{between.join(each) for between in ("", " ", "\n")} for each in parts]
    return not joined[0].isdisjoint(joined[1])


def _is_part_of(stored: list[Any], live: list[Any], open_items: int) -> bool:
    """Return whether `stored` has live messages in order, plus at most `open_items` others."""
    rest = list(live)
    for message in stored:
        if message in rest:
            rest = rest[rest.index(message) + 1 :]
        elif open_items:
            open_items -= 1
        else:
            return False
    return True


def completed_items(turn: TurnView, *, last: bool = False) -> list[dict[str, Any]]:
    """Return the final items of a live turn in the order of completion.

    An id that started again after its completion is another item; `last` keeps only the last one.
    """
    all_ends: list[Frame] = []
    for item in turn.items.values():
        ends = [
            end
            for before, end in zip([None, *item.completions], item.completions, strict=False)
            if before is None or any(came_between(before, begin, end) for begin in item.starts)
        ]
        all_ends += ends[-1:] if last else ends
    return [obj(dig(frame.params, "item")) for frame in by_arrival(all_ends)]


def _items_by_start(turn: TurnView) -> list[dict[str, Any]]:
    """Return the final items of a live turn in the order in which they began."""
    begun = {
        (item.starts or item.completions)[0]: item
        for item in turn.items.values()
        if item.completions
    }
    return [obj(dig(begun[frame].completions[-1].params, "item")) for frame in by_arrival(begun)]


def _texts(items: Iterable[dict[str, Any]], kind: str) -> list[Any]:
    """Return the texts of the messages of a kind."""
    return [_message_text(item) for item in items if item.get("type") == kind]


def _message_text(item: dict[str, Any]) -> Any:
    if item.get("type") == "agentMessage":
        return item.get("text")
    return _user_texts(item.get("content"))


def _user_texts(parts: Any) -> list[str]:
    """Return the texts of the parts of a user's input or message."""
    return [text(part.get("text")) for part in map(obj, arr(parts)) if "text" in part]
