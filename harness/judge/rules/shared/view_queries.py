"""Queries on the view that several rules share, and the names of things in findings.

A process may serve several clients, and a client that joins late has not seen everything. So a rule
that needs a turn from its beginning checks `began_here`; one that judges what the server must send
to this client about a thread checks `opened_here`.
"""

import posixpath
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from harness.judge.rules.shared.violations import Member, member
from harness.protocol.spec.item_types import delta_types
from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.trace.frame import SAYS_NOTHING, Frame, Kind
from harness.trace.marks import ServerEnded, Settled
from harness.trace.order import came_before, came_between, earliest, marked_before
from harness.trace.trace import Trace
from harness.trace.views import Conversation, ThreadView, TurnView

# macOS shows the temporary folders under their real name.
_REAL_ROOT: Final = "/private"

TURN_EVENTS: Final = ("turn/started", "turn/completed")


# The item type of each delta.
DELTA_ITEMS: Final = delta_types()
DELTAS: Final = tuple(DELTA_ITEMS)


def is_failure(answer: Frame) -> bool:
    """Return whether an answer reports failure.

    The specification does not show the form of a failure. So `result: null` with an `error`, or
    with any other member that has a value, is a failure too.
    """
    if answer.kind is Kind.ERROR:
        return True
    values = (value for key, value in obj(answer.json).items() if key not in SAYS_NOTHING)
    return answer.result is None and any(value is not None for value in values)


def request_subject(request: Frame) -> str:
    """Return the name of a request in findings."""
    return f"request {request.method} id {request.id}"


def opened_here(thread: ThreadView | None) -> bool:
    """Return whether this client opened the thread (start, resume, fork) within the trace."""
    return thread is not None and bool(thread.opening_answers)


def thread_of(conversation: Conversation, turn: TurnView) -> ThreadView | None:
    """Return the thread of a turn, None if it is unknown."""
    return conversation.threads.get(turn.thread_id)


def is_own_turn(conversation: Conversation, turn: TurnView | None) -> bool:
    """Return whether this client started the turn, or opened its thread."""
    if turn is None:
        return False
    return turn.reply is not None or opened_here(thread_of(conversation, turn))


def began_here(conversation: Conversation, turn: TurnView | None) -> bool:
    """Return whether this client received all messages of the turn from the first one on.

    True if the client started the turn, or had opened the thread before `turn/started`. False if it
    left the thread during the turn, or started the turn without following the thread: it is not
    specified whether starting a turn subscribes.
    """
    if turn is None:
        return False
    thread = thread_of(conversation, turn)
    if thread is not None and _left_during(thread, turn):
        return False
    if turn.reply is not None:
        return thread is None or not _was_away_at(thread, turn.reply)
    if thread is None or not thread.opening_answers or not turn.starts:
        return False
    return came_before(thread.opening_answers[0], turn.starts[0])


def _was_away_at(thread: ThreadView, reply: Frame) -> bool:
    """Return whether the client did not follow the thread when its turn/start was answered."""
    before = [opening for opening in thread.opening_answers if came_before(opening, reply)]
    if not before:
        return bool(thread.opening_answers)
    parted = (*thread.leaving_frames, *thread.archive_notifications)
    return any(came_between(before[-1], leaving, reply) for leaving in parted)


def _left_during(thread: ThreadView, turn: TurnView) -> bool:
    """Return whether the client left the thread after the turn began and before it ended."""
    first = earliest(start for start in (turn.request, *turn.starts[:1]) if start is not None)
    ended = turn.completions[0] if turn.completions else None
    return any(
        (first is None or came_before(first, leaving))
        and (ended is None or came_before(leaving, ended))
        for leaving in thread.leaving_frames
    )


def was_away(thread: ThreadView, message: Frame) -> bool:
    """Return whether this client may have missed a turn of a thread before a message.

    It left the thread, or the thread was archived or closed: others may have used it since.
    """
    return any(
        came_before(leaving, message)
        for leaving in (*thread.leaving_frames, *thread.archive_notifications)
    )


def resumed_between(thread: ThreadView | None, first: Frame, second: Frame) -> bool:
    """Return whether the client resumed a thread between two messages, so some may be repeated."""
    resumed = thread.resume_requests if thread is not None else ()
    return any(came_between(first, request, second) for request in resumed)


def thread_began_here(conversation: Conversation, turn: TurnView) -> bool:
    """Return whether the thread was started in the trace, so that all its turns are known.

    False once this client left or resumed the thread: it may have missed the start of a turn.
    """
    thread = thread_of(conversation, turn)
    away = thread is not None and (thread.leaving_frames or thread.resume_requests)
    return thread is not None and thread.reply is not None and not away


def was_completed_before(trace: Trace, turn: TurnView, request: Frame) -> bool:
    """Return whether the turn had certainly ended when a request was sent."""
    return any(trace.before(end, request) is True for end in turn.completions)


def turns_completed_before(trace: Trace, thread: ThreadView, request: Frame) -> list[TurnView]:
    """Return the turns of a thread that had certainly ended when a request was sent."""
    return [turn for turn in thread.turns.values() if was_completed_before(trace, turn, request)]


def is_ephemeral(thread: ThreadView) -> bool:
    """Return whether any answer or notification showed the thread as ephemeral."""
    values = [dig(frame.result, "thread", "ephemeral") for frame in thread.opening_answers]
    values += [dig(frame.params, "thread", "ephemeral") for frame in thread.starts]
    return True in values


def threads_in(frame: Frame) -> Iterator[dict[str, Any]]:
    """Yield the thread objects in an answer or a `thread/started`."""
    holder = obj(frame.params) if frame.kind is Kind.NOTIFICATION else obj(frame.result)
    if isinstance(holder.get("thread"), dict):
        yield obj(holder["thread"])
    for element in arr(holder.get("data")):
        if isinstance(element, dict):
            yield obj(element)


def thread_members(frame: Frame) -> Iterator[Member]:
    """Yield the members that contain the threads of `threads_in`."""
    holder = obj(frame.params) if frame.kind is Kind.NOTIFICATION else obj(frame.result)
    if isinstance(holder.get("thread"), dict):
        yield member(frame, "thread")
    for index, element in enumerate(arr(holder.get("data"))):
        if isinstance(element, dict):
            yield member(frame, "data", index)


def turn_in(frame: Frame) -> dict[str, Any]:
    """Return the turn object of a turn event or a turn/start answer, {} if it has none."""
    holder = frame.params if frame.kind is Kind.NOTIFICATION else frame.result
    return obj(dig(holder, "turn"))


def turn_ids_in_answer(conversation: Conversation, frame: Frame) -> Iterator[str]:
    """Yield the id of the turn in an answer to a request other than turn/start.

    For example, the answer that begins a review contains a turn. The specification does not say on
    which thread such a turn is. The turns of turn/start are in the view.
    """
    request = conversation.request_of(frame)
    turn_id = text(turn_in(frame).get("id"))
    if turn_id and (request is None or request.method != "turn/start"):
        yield turn_id


def is_named_by_turns_only(conversation: Conversation, thread_id: str) -> bool:
    """Return whether only messages about its turns have named the thread.

    Such a message may be a late one about another client's thread, or name the wrong thread.
    """
    thread = conversation.threads.get(thread_id)
    if thread is None:
        return True
    return not (thread.opening_answers or thread.starts or thread.statuses) and not any(
        turn.starts or turn.reply for turn in thread.turns.values()
    )


def completed_on_unknown_thread(conversation: Conversation, turn: TurnView) -> Frame | None:
    """Return the turn/completed of an open turn that names an otherwise unknown thread.

    None if it may be about another turn with the same id.
    """
    same_id = [
        other for other in conversation.turns.values() if other.id == turn.id and other is not turn
    ]
    if turn.completions or any(
        (other.starts or other.reply) and not other.completions for other in same_id
    ):
        return None
    ends = [other.completions[0] for other in same_id if other.completions and not other.starts]
    lost = [
        end
        for end in ends
        if is_named_by_turns_only(conversation, text(obj(end.params).get("threadId")))
    ]
    return lost[0] if lost else None


def describe_silence(trace: Trace, description: str = "none came") -> str:
    """Return the text for a missing message: the time waited, and the outstanding work.

    Both are in the mark `settled`; without it, return `description` alone.
    """
    marks = trace.marks_of(Settled)
    if not marks:
        return description
    settled = marks[-1].body
    counted = (
        f"{settled.model_streams} model streams",
        f"{settled.server_requests} server requests",
        f"{settled.child_processes} child processes",
        f"{settled.retries} announced retries",
    )
    return f"{description} in {settled.silence} s of silence; outstanding: {', '.join(counted)}"


def connection_suffix(trace: Trace, frame: Frame) -> str:
    """Return ` on connection <name>` for a finding, "" while the trace has one connection."""
    several = any(other.connection != frame.connection for other in trace.frames)
    return f" on connection {frame.connection}" if several else ""


def has_other_clients(trace: Trace, frame: Frame) -> bool:
    """Return whether another client spoke with the same process of the server as in a message.

    A connection belongs to the process in which its first message was sent.
    """
    ends = [mark for mark in trace.marks if isinstance(mark.body, ServerEnded)]
    own = next(other for other in trace.frames if other.connection == frame.connection)
    before = sum(marked_before(mark, own) for mark in ends)
    return any(
        other.connection != frame.connection
        and sum(marked_before(mark, other) for mark in ends) == before
        for other in trace.frames
    )


def item_in(frame: Frame) -> dict[str, Any]:
    """Return the item object of an item event, {} if it has none."""
    return obj(dig(frame.params, "item"))


def turn_id_of(frame: Frame) -> str:
    """Return the turn id of a notification, "" if it has none."""
    params = obj(frame.params)
    return text(params.get("turnId")) or text(dig(params, "turn", "id"))


def same_folder(path: str, other: str) -> bool:
    """Return whether two absolute paths name the same folder, without a look at the disk."""
    return plain_folder(path) == plain_folder(other)


def may_be_same_folder(path: str, other_path: str) -> bool:
    """Return whether two paths end in the same name: a parent may be a symbolic link."""
    name, other = (
        posixpath.basename(plain_folder(path)),
        posixpath.basename(plain_folder(other_path)),
    )
    return name == other


def plain_folder(path: str) -> str:
    """Return a path in one form: without `.`, `..`, doubled slashes and the /private of macOS."""
    plain = posixpath.normpath(path)
    # In POSIX, two slashes at the beginning may have a meaning of their own; not here.
    plain = plain[1:] if plain.startswith("//") else plain
    return plain.removeprefix(_REAL_ROOT) if plain.startswith(f"{_REAL_ROOT}/") else plain


def format_value(value: Any, limit: int = 120) -> str:
    """Return a value as at most `limit` characters for a finding, "nothing" if it is missing."""
    if value is MISSING:
        return "nothing"
    line = repr(value)
    return line if len(line) <= limit else line[: limit - 1] + "…"


class RequestsOfAllClients:
    """Requests with some methods, of any client; reads each frame once."""

    def __init__(self, trace: Trace, *methods: str) -> None:
        self._trace = trace
        self._methods = methods
        self._looked_at = 0
        self._requests: list[Frame] = []

    def before(self, message: Frame) -> list[Frame]:
        """Return the requests that were sent before a message, oldest first."""
        new = islice(self._trace.frames, self._looked_at, None)
        self._requests += [f for f in new if f.kind is Kind.REQUEST and f.method in self._methods]
        self._looked_at = len(self._trace.frames)
        return [frame for frame in self._requests if came_before(frame, message)]
