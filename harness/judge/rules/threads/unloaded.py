"""Rules on threads that are not loaded: how they are shown, and that they are not in memory."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Monitor, Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.known_threads import Ask, KnownThread, KnownThreads
from harness.judge.rules.shared.view_queries import thread_members
from harness.judge.rules.shared.violations import Member, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import StepBegins
from harness.trace.order import by_arrival, came_before, marked_before

NOT_LOADED = "notLoaded"
# Requests that may unload a thread, and do not load one.
_LEAVING = ("thread/unsubscribe", "thread/archive")
# What may be told of a thread that is not loaded.
_PARTING = ("thread/closed", "thread/archived")


class _Unloaded(Monitor):
    """Threads made in the trace that are certainly not loaded."""

    def begin(self) -> None:
        self._known = KnownThreads(self.trace)
        self._in_memory: list[tuple[Frame, set[str]]] = []

    @on_answer("thread/loaded/list")
    def on_thread_loaded_list_answer(self, frame: Frame) -> Outcomes:
        named = {one for one in arr(dig(frame.result, "data")) if isinstance(one, str)}
        self._in_memory.append((frame, named))
        return None

    def unloaded(
        self, request: Frame, answer: Frame, *, by_status: bool = False
    ) -> Iterator[tuple[KnownThread, Frame]]:
        """The threads that were not loaded while a request was carried out, and what shows it.

        With `by_status` those alone of which a status was told.
        """
        for thread in self._known.until(answer).values():
            shown = self._shown_by(thread, request, by_status=by_status)
            if shown is not None and not self._used(thread, shown, answer):
                yield thread, shown

    def restarted(self, request: Frame, answer: Frame) -> Iterator[tuple[KnownThread, Frame]]:
        """The threads of an earlier process that nobody has used in this one, and their start."""
        restarts = [
            mark
            for mark in self.trace.marks_of(StepBegins)
            if mark.body.name == "restart" and marked_before(mark, request)
        ]
        for thread in self._known.until(answer).values() if restarts else ():
            said = [thread.start, *thread.news, *(ask.request for ask in thread.asks)]
            listed = (frame for frame, named in self._in_memory if thread.id in named)
            if all(not marked_before(restarts[-1], frame) for frame in (*said, *listed)):
                yield thread, thread.start

    def _shown_by(self, thread: KnownThread, request: Frame, *, by_status: bool) -> Frame | None:
        """The last message before a request that says that a thread is not loaded."""
        told = [frame for frame in thread.news if _says_unloaded(frame, thread.id)]
        if by_status:
            told = [frame for frame in told if frame.method != "thread/closed"]
        else:
            told += [ask.answer for ask in thread.asks if _found_unloaded(ask) and ask.answer]
        earlier = [frame for frame in told if came_before(frame, request)]
        return by_arrival(earlier)[-1] if earlier else None

    def _used(self, thread: KnownThread, shown: Frame, until: Frame) -> bool:
        """Return whether a thread may have been loaded again, or something says that it was."""
        asked = any(
            ask.request.method not in _LEAVING
            and not ask.over_before(shown)
            and came_before(ask.request, until)
            for ask in thread.asks
        )
        told = any(
            came_before(shown, frame)
            and came_before(frame, until)
            and frame.method not in _PARTING
            and not _says_unloaded(frame, thread.id)
            for frame in thread.news
        )
        return asked or told


def _says_unloaded(frame: Frame, thread_id: str) -> bool:
    """Return whether a notification says that a thread is not loaded.

    The payload of thread/closed is not shown: it is of every thread that it names.
    """
    if frame.method == "thread/closed":
        return True
    params = obj(frame.params)
    changed = frame.method == "thread/status/changed" and params.get("threadId") == thread_id
    return changed and dig(params, "status", "type") == NOT_LOADED


def _found_unloaded(ask: Ask) -> bool:
    """Return whether the answer to a thread/unsubscribe says that the thread is not loaded."""
    answer = ask.answer if ask.request.method == "thread/unsubscribe" else None
    return answer is not None and dig(answer.result, "status") == NOT_LOADED


@rule(
    "status.unloaded-shown",
    title="A thread that is not loaded is shown as notLoaded",
    level=Level.MUST,
)
class UnloadedShown(_Unloaded):
    """Judges the status of threads in the answers of thread/read and thread/list.

    It must be notLoaded after thread/closed, after the status notLoaded, after a thread/unsubscribe
    that was answered by notLoaded, and after a restart, as long as no client has asked anything of
    the thread but to read and list it, and nothing says that it was loaded. Left open: the status
    of loaded threads (the text has list and read show notLoaded for them too), threads of others.
    """

    @on_answer("thread/read", "thread/list")
    def answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        shown = {text(obj(where.value).get("id")): where for where in thread_members(frame)}
        found = dict([*self.restarted(request, frame), *self.unloaded(request, frame)])
        for thread, why in found.items():
            where = shown.get(thread.id)
            status = dig(where.value, "status", "type") if where is not None else None
            if where is None or not isinstance(status, str):
                continue
            frames = (why, request, frame)
            if status == NOT_LOADED:
                yield Witness(thread.subject, frames)
                continue
            expected, also = f'"{NOT_LOADED}"', _members(why)
            at = where.part("status", "type")
            yield wrong(thread.subject, frames, at, expected, also=also)


@rule(
    "status.not-loaded-not-in-memory",
    title="A thread that is notLoaded is not among those in memory",
    level=Level.MUST,
    needs=("subscription",),
)
class NotInMemory(_Unloaded):
    """Judges that thread/loaded/list names no thread whose status was told to be notLoaded.

    Judged as long as no client has asked anything of the thread since, but to read and list it, and
    nothing says that it was loaded again. Left open: a notLoaded that list or read shows, since the
    text has them show it for loaded threads too; threads of others.
    """

    @on_answer("thread/loaded/list")
    def on_loaded_list(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        data = arr(dig(frame.result, "data"))
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        for thread, why in self.unloaded(request, frame, by_status=True):
            frames = (why, request, frame)
            if thread.id in data:
                where, also = member(frame, "data", data.index(thread.id)), _members(why)
                yield wrong(thread.subject, frames, where, "no thread not loaded", also=also)
            elif dig(frame.result, "nextCursor") is None and "cursor" not in obj(request.params):
                yield Witness(thread.subject, frames)


def _members(why: Frame) -> tuple[Member, ...]:
    """The member by which a message says that a thread is not loaded."""
    if why.method == "thread/status/changed":
        return (member(why, "status", "type"),)
    return (member(why, "status"),) if dig(why.result, "status") == NOT_LOADED else ()


@rule(
    "thread.turns-unasked",
    title="Where turns cannot be asked for, none are given",
    level=Level.SHOULD,
)
class TurnsUnasked(Monitor):
    """Judges that thread/start and thread/list give no turns ("Thread", turns).

    Absent, null and [] are all right. Right for a thread without an ended turn proves nothing.
    """

    @on_answer("thread/start", "thread/list")
    def answer(self, frame: Frame) -> Outcomes:
        for where in thread_members(frame):
            thread = self.conversation.threads.get(text(obj(where.value).get("id")))
            turns = arr(dig(where.value, "turns"))
            subject = f"thread {text(obj(where.value).get('id'))}"
            if turns:
                expected = "no turns, since none can be asked for"
                yield wrong(subject, (frame,), where.part("turns"), expected)
            elif thread is not None and any(turn.completed for turn in thread.turns.values()):
                yield Witness(subject, (frame,))
