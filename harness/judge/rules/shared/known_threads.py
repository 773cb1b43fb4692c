"""Threads that were started or forked in a trace, as far as lists must agree with them.

The harness records the messages of all connections in one order. Everything received before a
request was sent was written before it, on any connection; a message received later may have been
written earlier. So the state of a thread at a moment follows from earlier answers only, and an
unanswered request leaves it uncertain.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, cast

from harness.judge.rules.shared.thread_histories import rolled_back_turns
from harness.judge.rules.shared.view_queries import is_failure
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import StepBegins
from harness.trace.order import came_before, marked_before
from harness.trace.trace import Trace

# Requests that only read threads.
LOOKING: Final = frozenset({"thread/read", "thread/list", "thread/loaded/list"})
ARCHIVING: Final = {"thread/archive": True, "thread/unarchive": False}
_MAKING: Final = ("thread/start", "thread/fork")
# Requests of the specification that leave a thread stored under its own id.
_KEEPING: Final = LOOKING | {
    *ARCHIVING,
    "thread/resume",
    "thread/fork",
    "thread/name/set",
    "thread/unsubscribe",
    "thread/compact/start",
    "turn/start",
    "turn/steer",
    "turn/interrupt",
}


@dataclass(slots=True)
class Exchange:
    """A request that names a thread, and its answer, None while it is unanswered."""

    request: Frame
    answer: Frame | None = None

    @property
    def is_accepted(self) -> bool:
        """Return whether it was answered with success."""
        return self.answer is not None and not is_failure(self.answer)

    def ended_before(self, moment: Frame) -> bool:
        """Return whether the request had certainly been answered at a moment."""
        return self.answer is not None and came_before(self.answer, moment)


@dataclass(slots=True, eq=False)
class KnownThread:
    """A thread started or forked in the trace; `start` is that answer, `fields` its thread object.

    `exchanges` are the requests of any client that name it, except reading ones; `notifications`
    those about it; `running_turns` its turns in progress; `completions` the ends of completed
    turns; `previews` all that any message showed. `moved_by_others`: it was announced as archived
    or restored without a request. `source` is the thread it was forked from, None if unknown.
    """

    id: str
    start: Frame
    fields: dict[str, Any]
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    notifications: list[Frame] = field(default_factory=list[Frame])
    running_turns: dict[str, Frame] = field(default_factory=dict[str, Frame])
    completions: list[Frame] = field(default_factory=list[Frame])
    previews: list[tuple[Frame, str]] = field(default_factory=list[tuple[Frame, str]])
    ephemeral: bool = False
    moved_by_others: bool = False
    is_fork: bool = False
    source: "KnownThread | None" = None

    @property
    def subject(self) -> str:
        """Return its name in findings."""
        return f"thread {self.id}"

    def is_unchanged(self, first: Frame, last: Frame) -> bool:
        """Return whether the thread cannot have changed between two messages.

        No turn of it ran, no notification named it, and no request that names it overlapped.
        """
        if any(came_before(began, last) for began in self.running_turns.values()):
            return False
        if any(
            not came_before(notification, first) and came_before(notification, last)
            for notification in self.notifications
        ):
            return False
        return all(
            ask.ended_before(first) or came_before(last, ask.request) for ask in self.exchanges
        )

    def is_stored(self, moment: Frame) -> bool:
        """Return whether the thread was certainly stored: one of its turns had completed.

        A thread without a turn may be stored later, an ephemeral one never is. Turns that were
        dropped do not count. Nothing is certain after a review, or a request that is not in the
        specification.
        """
        if self.ephemeral or (self.source is not None and self.source.ephemeral):
            return False
        completed = sum(came_before(completion, moment) for completion in self.completions)
        for ask in self.exchanges:
            if ask.request.method in _KEEPING or came_before(moment, ask.request):
                continue
            dropped = rolled_back_turns(ask.request)
            if ask.request.method != "thread/rollback" or dropped is None:
                return False
            completed -= dropped
        return completed > 0

    def is_archived(self, moment: Frame) -> bool | None:
        """Return whether the thread was archived at a moment, None if that is uncertain.

        The effect of a rejected request is unknown, and so is whether an archived thread that is
        used again stays archived.
        """
        if self.moved_by_others or (self.is_fork and not self._was_never_archived()):
            return None
        state: bool | None = False
        last: Exchange | None = None
        for ask in self.exchanges:
            if came_before(moment, ask.request):
                break
            after = ARCHIVING.get(ask.request.method)
            if after is None:
                state = None if state is not False else state
            elif not ask.ended_before(moment):
                return None
            else:
                apart = last is None or last.ended_before(ask.request)
                state, last = (after if ask.is_accepted and apart else None), ask
        return state

    def _was_never_archived(self) -> bool:
        """Return whether no source of this fork was ever archived.

        The specification does not say whether the fork of an archived thread is archived too.
        """
        if self.source is None:
            return not self.is_fork
        was_moved = any(ask.request.method in ARCHIVING for ask in self.source.exchanges)
        return (
            not was_moved and not self.source.moved_by_others and self.source._was_never_archived()
        )

    def is_archived_throughout(self, first: Frame, last: Frame) -> bool | None:
        """Return whether the thread was archived from one message to another, None if uncertain."""
        moved = any(
            ask.request.method in ARCHIVING
            and came_before(first, ask.request)
            and came_before(ask.request, last)
            for ask in self.exchanges
        )
        return None if moved else self.is_archived(first)

    def names_set(self, moment: Frame) -> list[str] | None:
        """Return the strings in the last thread/name/set, one of which is the name.

        [] if there was no such request, None if its effect is uncertain.
        """
        setting = [
            ask
            for ask in self.exchanges
            if ask.request.method == "thread/name/set" and came_before(ask.request, moment)
        ]
        if not setting:
            return []
        last = setting[-1]
        alone = all(ask.ended_before(last.request) for ask in setting[:-1])
        if not alone or not last.ended_before(moment) or not last.is_accepted:
            return None
        return [name for name in texts_in(last.request.params) if name != self.id]

    def ran_in_another_folder(self) -> bool:
        """Return whether a turn of the thread, or of its source, may have had another folder."""
        if self.is_fork and (self.source is None or self.source.ran_in_another_folder()):
            return True
        return any(
            ask.request.method == "turn/start" and "cwd" in obj(ask.request.params)
            for ask in self.exchanges
        )


class KnownThreads:
    """Threads that any client started or forked in a trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._read = 0
        self._exchanges: dict[Frame, list[tuple[KnownThread, Exchange]]] = {}
        self.threads: dict[str, KnownThread] = {}

    def read_until(self, moment: Frame) -> dict[str, KnownThread]:
        """Read up to and including a message; return the threads known then, by id."""
        for frame in islice(self._trace.frames, self._read, None):
            if came_before(moment, frame):
                break
            self._read += 1
            self._add_frame(frame)
        return self.threads

    def was_server_killed(self, thread: KnownThread, moment: Frame) -> bool:
        """Return whether the scenario killed a server since the thread was started."""
        return any(
            mark.body.name == "kill"
            and marked_before(mark, moment)
            and not marked_before(mark, thread.start)
            for mark in self._trace.marks_of(StepBegins)
        )

    def _add_frame(self, frame: Frame) -> None:
        request = self._trace.pairs.request_of(frame)
        if frame.kind is Kind.REQUEST:
            if not frame.from_target:
                self._add_request(frame)
        elif frame.kind is Kind.NOTIFICATION:
            if frame.from_target:
                self._add_notification(frame)
        elif request is not None and frame.from_target:
            self._add_answer(request, frame)

    def _add_request(self, frame: Frame) -> None:
        if frame.method in LOOKING:
            return
        for thread in self._threads_named_in(frame.params):
            ask = Exchange(frame)
            thread.exchanges.append(ask)
            self._exchanges.setdefault(frame, []).append((thread, ask))

    def _threads_named_in(self, params: Any) -> list[KnownThread]:
        """Return the threads that a message may name: the params of many methods are not shown."""
        named_thread = self.threads.get(text(obj(params).get("threadId")))
        if named_thread is not None:
            return [named_thread]
        return [
            self.threads[thread_id]
            for thread_id in {*texts_in(params)}
            if thread_id in self.threads
        ]

    def _add_notification(self, frame: Frame) -> None:
        params = obj(frame.params)
        for thread in self._threads_named_in(params):
            thread.notifications.append(frame)
            turn_id = text(dig(params, "turn", "id"))
            if frame.method == "turn/started":
                thread.running_turns[turn_id] = frame
            elif frame.method == "turn/completed":
                thread.running_turns.pop(turn_id, None)
                if dig(params, "turn", "status") == "completed":
                    thread.completions.append(frame)
            elif frame.method in ("thread/archived", "thread/unarchived"):
                method = frame.method.removesuffix("d")
                is_requested = any(ask.request.method == method for ask in thread.exchanges)
                thread.moved_by_others = thread.moved_by_others or not is_requested
        self._update_thread(obj(params.get("thread")), frame)

    def _add_answer(self, request: Frame, answer: Frame) -> None:
        for thread, ask in self._exchanges.get(request, ()):
            ask.answer = ask.answer or answer
            turn_id = text(dig(answer.result, "turn", "id"))
            ended = any(dig(end.params, "turn", "id") == turn_id for end in thread.notifications)
            if turn_id and not ended:
                thread.running_turns.setdefault(turn_id, answer)
        if answer.kind is not Kind.RESPONSE:
            return
        thread_fields = obj(dig(answer.result, "thread"))
        thread_id = text(thread_fields.get("id"))
        if request.method in _MAKING and thread_id and thread_id not in self.threads:
            thread = KnownThread(thread_id, answer, thread_fields)
            thread.ephemeral = obj(request.params).get("ephemeral") is True
            if request.method == "thread/fork":
                thread.is_fork = True
                thread.source = self.threads.get(text(obj(request.params).get("threadId")))
            self.threads[thread_id] = thread
        for fields in (thread_fields, *_listed_threads(answer)):
            self._update_thread(fields, answer)

    def _update_thread(self, fields: dict[str, Any], frame: Frame) -> None:
        thread = self.threads.get(text(fields.get("id")))
        if thread is not None:
            thread.ephemeral = thread.ephemeral or fields.get("ephemeral") is True
            if isinstance(fields.get("preview"), str):
                thread.previews.append((frame, fields["preview"]))


def _listed_threads(answer: Frame) -> Iterator[dict[str, Any]]:
    data = dig(answer.result, "data")
    for element in cast("list[Any]", data) if isinstance(data, list) else ():
        yield obj(element)


def texts_in(value: Any) -> Iterator[str]:
    """Yield the strings among the values of a JSON value."""
    waiting = [value]
    while waiting:
        element = waiting.pop()
        if isinstance(element, str):
            yield element
        elif isinstance(element, dict):
            waiting.extend(cast("dict[str, Any]", element).values())
        elif isinstance(element, list):
            waiting.extend(cast("list[Any]", element))
