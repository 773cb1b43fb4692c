"""Threads made in a trace, as far as a list must agree with it.

The harness writes the messages of all connections down in one order. Whatever it had received
before it sent a request was written before, on whichever connection; what was received later may
have been written earlier or not. So a thread is known at a moment only by what was answered before,
and every request without an answer by then leaves open what it may change.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, cast

from harness.judge.rules.shared.view_queries import failed
from harness.protocol.values import dig, obj, text
from harness.trace.correlation import Correlation
from harness.trace.frame import Frame, Kind
from harness.trace.marks import StepBegins
from harness.trace.order import came_before, marked_before
from harness.trace.trace import Trace

# Requests that only look at threads.
LOOKING: Final = frozenset({"thread/read", "thread/list", "thread/loaded/list"})
ARCHIVING: Final = {"thread/archive": True, "thread/unarchive": False}
_MAKING: Final = ("thread/start", "thread/fork")
# Requests of the text that leave a thread stored, and stored under its own id.
_KEEPING: Final = LOOKING | {
    *ARCHIVING,
    "thread/resume",
    "thread/fork",
    "thread/name/set",
    "thread/unsubscribe",
    "turn/start",
    "turn/steer",
    "turn/interrupt",
}


@dataclass(slots=True)
class Ask:
    """A request that names a thread, and its answer, None while there is none."""

    request: Frame
    answer: Frame | None = None

    @property
    def done(self) -> bool:
        """Return whether it was answered by a success."""
        return self.answer is not None and not failed(self.answer)

    def over_before(self, moment: Frame) -> bool:
        """Return whether it had certainly been carried out, or refused, at a moment."""
        return self.answer is not None and came_before(self.answer, moment)


@dataclass(slots=True, eq=False)
class KnownThread:
    """A thread that was started or forked in the trace; `shown` is as that answer had it.

    `asks` are the requests of any client that name it, but for those that only look. `news` are the
    notifications about it, `running` its turns that began and have not ended, `ended` the ends of
    completed turns. `previews` are all that any message showed. `copied` says that it is a fork, of
    `source` if that one was started or forked in the trace too.
    """

    id: str
    start: Frame
    shown: dict[str, Any]
    asks: list[Ask] = field(default_factory=list[Ask])
    news: list[Frame] = field(default_factory=list[Frame])
    running: dict[str, Frame] = field(default_factory=dict[str, Frame])
    ended: list[Frame] = field(default_factory=list[Frame])
    previews: list[tuple[Frame, str]] = field(default_factory=list[tuple[Frame, str]])
    ephemeral: bool = False
    moved_by_others: bool = False
    copied: bool = False
    source: "KnownThread | None" = None

    @property
    def subject(self) -> str:
        """Return its name in findings."""
        return f"thread {self.id}"

    def untouched(self, first: Frame, last: Frame) -> bool:
        """Return whether nothing can have changed it from one message to another.

        No turn of it ran, nothing was told of it, and every request that names it was over before
        or came later.
        """
        if any(came_before(began, last) for began in self.running.values()):
            return False
        if any(not came_before(told, first) and came_before(told, last) for told in self.news):
            return False
        return all(ask.over_before(first) or came_before(last, ask.request) for ask in self.asks)

    def stored(self, moment: Frame) -> bool:
        """Return whether it was certainly stored at a moment: a turn of it had been completed.

        A thread without a turn may be stored later, an ephemeral one never is. Nothing is certain
        after a rollback, a compaction, a review, or any request that the text does not have.
        """
        if self.ephemeral or not self.ended or not came_before(self.ended[0], moment):
            return False
        if self.source is not None and self.source.ephemeral:
            return False
        others = [ask for ask in self.asks if ask.request.method not in _KEEPING]
        return all(came_before(moment, ask.request) for ask in others)

    def archived(self, moment: Frame) -> bool | None:
        """Return whether it was archived at a moment, None where that is not certain.

        What a request that was refused did is not known, nor whether an archived thread that is
        used again stays in the archive.
        """
        if self.moved_by_others or (self.copied and not self._of_no_archive()):
            return None
        state: bool | None = False
        last: Ask | None = None
        for ask in self.asks:
            if came_before(moment, ask.request):
                break
            after = ARCHIVING.get(ask.request.method)
            if after is None:
                state = None if state is not False else state
            elif not ask.over_before(moment):
                return None
            else:
                apart = last is None or last.over_before(ask.request)
                state, last = (after if ask.done and apart else None), ask
        return state

    def _of_no_archive(self) -> bool:
        """Return whether nothing that a fork comes from was archived.

        Where its fork is, is not said.
        """
        if self.source is None:
            return not self.copied
        asked = any(ask.request.method in ARCHIVING for ask in self.source.asks)
        return not asked and not self.source.moved_by_others and self.source._of_no_archive()

    def in_archive(self, first: Frame, last: Frame) -> bool | None:
        """Return whether it was archived from one message to another, None where that is not
        certain.
        """
        moved = any(
            ask.request.method in ARCHIVING
            and came_before(first, ask.request)
            and came_before(ask.request, last)
            for ask in self.asks
        )
        return None if moved else self.archived(first)

    def named(self, moment: Frame) -> list[str] | None:
        """The texts of the last thread/name/set; none where no name was set, None if not known."""
        setting = [
            ask
            for ask in self.asks
            if ask.request.method == "thread/name/set" and came_before(ask.request, moment)
        ]
        if not setting:
            return []
        last = setting[-1]
        alone = all(ask.over_before(last.request) for ask in setting[:-1])
        if not alone or not last.over_before(moment) or not last.done:
            return None
        return [one for one in texts_in(last.request.params) if one != self.id]

    def went_elsewhere(self) -> bool:
        """Return whether a turn of it, or of the one it was forked from, was to run in another
        folder.
        """
        if self.copied and (self.source is None or self.source.went_elsewhere()):
            return True
        return any(
            ask.request.method == "turn/start" and "cwd" in obj(ask.request.params)
            for ask in self.asks
        )


class KnownThreads:
    """The threads of a trace that were started or forked in it, by any client; `until` reads on."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._read = 0
        self._correlation = Correlation()
        self._asked: dict[Frame, list[tuple[KnownThread, Ask]]] = {}
        self.threads: dict[str, KnownThread] = {}

    def until(self, moment: Frame) -> dict[str, KnownThread]:
        """The threads, by id, with all that had come when a message came, that one included."""
        for frame in islice(self._trace.frames, self._read, None):
            if came_before(moment, frame):
                break
            self._read += 1
            self._feed(frame)
        return self.threads

    def killed(self, thread: KnownThread, moment: Frame) -> bool:
        """Return whether the scenario killed a server since the thread was started."""
        return any(
            mark.body.name == "kill"
            and marked_before(mark, moment)
            and not marked_before(mark, thread.start)
            for mark in self._trace.marks_of(StepBegins)
        )

    def _feed(self, frame: Frame) -> None:
        request = self._correlation.feed(frame)
        if frame.kind is Kind.REQUEST:
            if not frame.from_target:
                self._ask(frame)
        elif frame.kind is Kind.NOTIFICATION:
            if frame.from_target:
                self._told(frame)
        elif request is not None and frame.from_target:
            self._answered(request, frame)

    def _ask(self, frame: Frame) -> None:
        if frame.method in LOOKING:
            return
        for thread in self._meant(frame.params):
            ask = Ask(frame)
            thread.asks.append(ask)
            self._asked.setdefault(frame, []).append((thread, ask))

    def _meant(self, params: Any) -> list[KnownThread]:
        """The threads that a message may be about: of many methods the params are not shown."""
        named = self.threads.get(text(obj(params).get("threadId")))
        if named is not None:
            return [named]
        return [self.threads[one] for one in {*texts_in(params)} if one in self.threads]

    def _told(self, frame: Frame) -> None:
        params = obj(frame.params)
        for thread in self._meant(params):
            thread.news.append(frame)
            turn_id = text(dig(params, "turn", "id"))
            if frame.method == "turn/started":
                thread.running[turn_id] = frame
            elif frame.method == "turn/completed":
                thread.running.pop(turn_id, None)
                if dig(params, "turn", "status") == "completed":
                    thread.ended.append(frame)
            elif frame.method in ("thread/archived", "thread/unarchived"):
                asked = frame.method.removesuffix("d")
                known = any(ask.request.method == asked for ask in thread.asks)
                thread.moved_by_others = thread.moved_by_others or not known
        self._look(obj(params.get("thread")), frame)

    def _answered(self, request: Frame, answer: Frame) -> None:
        for thread, ask in self._asked.get(request, ()):
            ask.answer = ask.answer or answer
            turn_id = text(dig(answer.result, "turn", "id"))
            ended = any(dig(end.params, "turn", "id") == turn_id for end in thread.news)
            if turn_id and not ended:
                thread.running.setdefault(turn_id, answer)
        if answer.kind is not Kind.RESPONSE:
            return
        shown = obj(dig(answer.result, "thread"))
        thread_id = text(shown.get("id"))
        if request.method in _MAKING and thread_id and thread_id not in self.threads:
            thread = KnownThread(thread_id, answer, shown)
            thread.ephemeral = obj(request.params).get("ephemeral") is True
            if request.method == "thread/fork":
                thread.copied = True
                thread.source = self.threads.get(text(obj(request.params).get("threadId")))
            self.threads[thread_id] = thread
        for one in (shown, *_listed(answer)):
            self._look(one, answer)

    def _look(self, shown: dict[str, Any], frame: Frame) -> None:
        thread = self.threads.get(text(shown.get("id")))
        if thread is not None:
            thread.ephemeral = thread.ephemeral or shown.get("ephemeral") is True
            if isinstance(shown.get("preview"), str):
                thread.previews.append((frame, shown["preview"]))


def _listed(answer: Frame) -> Iterator[dict[str, Any]]:
    data = dig(answer.result, "data")
    for element in cast("list[Any]", data) if isinstance(data, list) else ():
        yield obj(element)


def texts_in(value: Any) -> Iterator[str]:
    """The strings among the values of a JSON value."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting.extend(cast("dict[str, Any]", one).values())
        elif isinstance(one, list):
            waiting.extend(cast("list[Any]", one))
