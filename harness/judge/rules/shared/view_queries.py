"""Questions that several rules ask of the view, and how findings name what they are about.

A process may serve several clients, and a client that joins late has not seen everything. So a rule
that needs a turn from its beginning asks `began_here`; one that judges what a thread owes this
client asks `opened_here`.
"""

import posixpath
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from harness.judge.rules.shared.violations import Member, member
from harness.protocol.spec.item_types import delta_types
from harness.protocol.values import MISSING, arr, dig, obj, text
from harness.trace.frame import SAYS_NOTHING, Frame, Kind
from harness.trace.marks import Settled
from harness.trace.order import came_before, came_between, earliest
from harness.trace.trace import Trace
from harness.trace.views import Conversation, ThreadView, TurnView

# macOS shows the temporary folders under their real name.
_REAL_ROOT: Final = "/private"

TURN_EVENTS: Final = ("turn/started", "turn/completed")


# Which type of item each delta belongs to.
DELTA_ITEMS: Final = delta_types()
DELTAS: Final = tuple(DELTA_ITEMS)


def failed(answer: Frame) -> bool:
    """Return whether an answer reports failure.

    The text does not show the form of a failure. So `result: null` together with an `error`, or
    with any other member that has a value, is a failure too.
    """
    if answer.kind is Kind.ERROR:
        return True
    said = (value for key, value in obj(answer.json).items() if key not in SAYS_NOTHING)
    return answer.result is None and any(value is not None for value in said)


def request_subject(request: Frame) -> str:
    """Return the name of a request in findings."""
    return f"request {request.method} id {request.id}"


def opened_here(thread: ThreadView | None) -> bool:
    """Return whether this client opened the thread (start, resume, fork) within the trace."""
    return thread is not None and bool(thread.opened)


def thread_of(conversation: Conversation, turn: TurnView) -> ThreadView | None:
    """The thread that a turn was last said to belong to, None while nothing said so."""
    return conversation.threads.get(turn.thread_id)


def is_own_turn(conversation: Conversation, turn: TurnView | None) -> bool:
    """Return whether this client started the turn, or opened its thread."""
    if turn is None:
        return False
    return turn.reply is not None or opened_here(thread_of(conversation, turn))


def began_here(conversation: Conversation, turn: TurnView | None) -> bool:
    """Return whether this client got all messages of the turn, from the first one on.

    True where the client started the turn, or had opened the thread before `turn/started` came;
    False where it left the thread during the turn, and where it started the turn without following
    the thread, which it had left or opened later: whether starting a turn is following is open.
    """
    if turn is None:
        return False
    thread = thread_of(conversation, turn)
    if thread is not None and _left_in(thread, turn):
        return False
    if turn.reply is not None:
        return thread is None or not _away_at(thread, turn.reply)
    if thread is None or not thread.opened or not turn.started:
        return False
    return came_before(thread.opened[0], turn.started[0])


def _away_at(thread: ThreadView, reply: Frame) -> bool:
    """Return whether the client did not follow the thread when its turn/start was answered."""
    before = [one for one in thread.opened if came_before(one, reply)]
    if not before:
        return bool(thread.opened)
    parted = (*thread.left, *thread.put_away)
    return any(came_between(before[-1], one, reply) for one in parted)


def _left_in(thread: ThreadView, turn: TurnView) -> bool:
    """Return whether the client left the thread after the turn began and before it ended."""
    begun = earliest(one for one in (turn.request, *turn.started[:1]) if one is not None)
    ended = turn.completed[0] if turn.completed else None
    return any(
        (begun is None or came_before(begun, left)) and (ended is None or came_before(left, ended))
        for left in thread.left
    )


def was_away(thread: ThreadView, message: Frame) -> bool:
    """Return whether this client may have missed a turn of a thread before a message.

    It left the thread, or it was archived or closed, so that others may have gone on with it.
    """
    return any(came_before(one, message) for one in (*thread.left, *thread.put_away))


def resumed_between(thread: ThreadView | None, first: Frame, second: Frame) -> bool:
    """Return whether the client resumed a thread between two messages.

    Some may then be repeated.
    """
    resumed = thread.resumed if thread is not None else ()
    return any(came_between(first, request, second) for request in resumed)


def thread_began_here(conversation: Conversation, turn: TurnView) -> bool:
    """Return whether the turn's thread was started within the trace, so that all its turns are
    known.

    False once this client left or resumed the thread: a turn may have begun in the meantime that
    the client was not told of.
    """
    thread = thread_of(conversation, turn)
    away = thread is not None and (thread.left or thread.resumed)
    return thread is not None and thread.reply is not None and not away


def completed_before(trace: Trace, turn: TurnView, request: Frame) -> bool:
    """Return whether the turn had certainly ended when a request was sent."""
    return any(trace.before(end, request) is True for end in turn.completed)


def first_completed(trace: Trace, thread: ThreadView, request: Frame) -> list[TurnView]:
    """The turns of a thread that had certainly ended when a request was sent."""
    return [turn for turn in thread.turns.values() if completed_before(trace, turn, request)]


def ephemeral(thread: ThreadView) -> bool:
    """Return whether any answer or notification showed the thread as ephemeral."""
    shown = [dig(frame.result, "thread", "ephemeral") for frame in thread.opened]
    shown += [dig(frame.params, "thread", "ephemeral") for frame in thread.started]
    return True in shown


def threads_in(frame: Frame) -> Iterator[dict[str, Any]]:
    """The thread objects that an answer or a `thread/started` carries."""
    holder = obj(frame.params) if frame.kind is Kind.NOTIFICATION else obj(frame.result)
    if isinstance(holder.get("thread"), dict):
        yield obj(holder["thread"])
    for element in arr(holder.get("data")):
        if isinstance(element, dict):
            yield obj(element)


def thread_members(frame: Frame) -> Iterator[Member]:
    """The members that hold the threads of `threads_in`."""
    holder = obj(frame.params) if frame.kind is Kind.NOTIFICATION else obj(frame.result)
    if isinstance(holder.get("thread"), dict):
        yield member(frame, "thread")
    for index, element in enumerate(arr(holder.get("data"))):
        if isinstance(element, dict):
            yield member(frame, "data", index)


def turn_in(frame: Frame) -> dict[str, Any]:
    """The turn object of a turn event or of a turn/start answer."""
    holder = frame.params if frame.kind is Kind.NOTIFICATION else frame.result
    return obj(dig(holder, "turn"))


def named_by_answer(conversation: Conversation, frame: Frame) -> Iterator[str]:
    """The id of the turn in an answer to a request other than turn/start.

    For example, the answer that begins a review contains a turn. The text does not say on which
    thread such a turn is. The turns of turn/start are in the view.
    """
    request = conversation.request_of(frame)
    turn_id = text(turn_in(frame).get("id"))
    if turn_id and (request is None or request.method != "turn/start"):
        yield turn_id


def named_by_turns_only(conversation: Conversation, thread_id: str) -> bool:
    """Return whether only messages about its turns have named the thread.

    Such a message may be a late one about another client's thread, or name the wrong thread.
    """
    thread = conversation.threads.get(thread_id)
    if thread is None:
        return True
    return not (thread.opened or thread.started or thread.statuses) and not any(
        turn.started or turn.reply for turn in thread.turns.values()
    )


def completed_on_unknown_thread(conversation: Conversation, turn: TurnView) -> Frame | None:
    """The turn/completed of an open turn that names a thread which nothing else names.

    None where it may be about another turn with the same id.
    """
    alike = [one for one in conversation.turns.values() if one.id == turn.id and one is not turn]
    if turn.completed or any((one.started or one.reply) and not one.completed for one in alike):
        return None
    ends = [one.completed[0] for one in alike if one.completed and not one.started]
    lost = [
        end
        for end in ends
        if named_by_turns_only(conversation, text(obj(end.params).get("threadId")))
    ]
    return lost[0] if lost else None


def never_came(trace: Trace, what: str = "none came") -> str:
    """The text for a message that never came: how long was waited, and what was outstanding.

    Both are in the mark `settled`; without it only `what` is said.
    """
    marks = trace.marks_of(Settled)
    if not marks:
        return what
    settled = marks[-1].body
    counted = (
        f"{settled.model_streams} model streams",
        f"{settled.server_requests} server requests",
        f"{settled.child_processes} child processes",
        f"{settled.retries} announced retries",
    )
    return f"{what} in {settled.silence} s of silence; outstanding: {', '.join(counted)}"


def on_connection(trace: Trace, frame: Frame) -> str:
    """Name the connection for a finding; "" while a trace has one connection."""
    several = any(other.connection != frame.connection for other in trace.frames)
    return f" on connection {frame.connection}" if several else ""


def item_in(frame: Frame) -> dict[str, Any]:
    """The item object of an item event."""
    return obj(dig(frame.params, "item"))


def turn_id_of(frame: Frame) -> str:
    """The turn that a notification names, "" where it names none."""
    params = obj(frame.params)
    return text(params.get("turnId")) or text(dig(params, "turn", "id"))


def same_folder(asked: str, given: str) -> bool:
    """Return whether two absolute paths name the same folder, judged by their text."""
    return plain_folder(asked) == plain_folder(given)


def perhaps_same_folder(asked: str, given: str) -> bool:
    """Return whether two paths may name the same folder.

    A folder above it may be a symbolic link.
    """
    one, other = posixpath.basename(plain_folder(asked)), posixpath.basename(plain_folder(given))
    return one == other


def plain_folder(path: str) -> str:
    """A path in one form: without `.`, `..`, doubled slashes and the /private of macOS."""
    plain = posixpath.normpath(path)
    # POSIX lets a path that begins with two slashes mean something else; here it does not.
    plain = plain[1:] if plain.startswith("//") else plain
    return plain.removeprefix(_REAL_ROOT) if plain.startswith(f"{_REAL_ROOT}/") else plain


def shown(value: Any, limit: int = 120) -> str:
    """A value for reading in a finding."""
    if value is MISSING:
        return "nothing"
    line = repr(value)
    return line if len(line) <= limit else line[: limit - 1] + "…"


class SentByAnybody:
    """The requests of some methods, sent by any client; looks at each frame only once."""

    def __init__(self, trace: Trace, *methods: str) -> None:
        self._trace = trace
        self._methods = methods
        self._looked_at = 0
        self._found: list[Frame] = []

    def before(self, message: Frame) -> list[Frame]:
        """Those that were sent before a message, oldest first."""
        new = islice(self._trace.frames, self._looked_at, None)
        self._found += [f for f in new if f.kind is Kind.REQUEST and f.method in self._methods]
        self._looked_at = len(self._trace.frames)
        return [frame for frame in self._found if came_before(frame, message)]
