"""Rules on threads that are not loaded: their status, and that they are not in memory."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Monitor, Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.known_threads import Exchange, KnownThread, KnownThreads
from harness.judge.rules.shared.view_queries import thread_members
from harness.judge.rules.shared.violations import Member, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import StepBegins
from harness.trace.order import by_arrival, came_before, marked_before

NOT_LOADED = "notLoaded"
# Requests that may unload a thread but not load it.
_LEAVING = ("thread/unsubscribe", "thread/archive")
# Notifications of threads that have left memory, or may have.
_PARTING = ("thread/closed", "thread/archived")


class _Unloaded(Monitor):
    """Base of rules on threads made in the trace that are certainly not loaded."""

    def begin(self) -> None:
        self._threads = self.conversation.reader(KnownThreads, self.trace)
        self._in_memory: list[tuple[Frame, set[str]]] = []

    @on_answer("thread/loaded/list")
    def on_thread_loaded_list_answer(self, frame: Frame) -> Outcomes:
        thread_ids = {
            thread_id for thread_id in arr(dig(frame.result, "data")) if isinstance(thread_id, str)
        }
        self._in_memory.append((frame, thread_ids))
        return None

    def unloaded_threads(
        self, request: Frame, answer: Frame, *, by_status: bool = False
    ) -> Iterator[tuple[KnownThread, Frame]]:
        """Yield the threads that were not loaded during a request, with the message that shows it.

        With `by_status`, only those with a reported status.
        """
        for thread in self._threads.read_until(answer).values():
            proof = self._shown_by(thread, request, by_status=by_status)
            if proof is not None and not self._may_be_loaded(thread, proof, answer):
                yield thread, proof

    def threads_before_restart(
        self, request: Frame, answer: Frame
    ) -> Iterator[tuple[KnownThread, Frame]]:
        """Yield the threads of an earlier process not used in this one, with their start."""
        restarts = [
            mark
            for mark in self.trace.marks_of(StepBegins)
            if mark.body.name == "restart" and marked_before(mark, request)
        ]
        for thread in self._threads.read_until(answer).values() if restarts else ():
            messages = [
                thread.start,
                *thread.notifications,
                *(ask.request for ask in thread.exchanges),
            ]
            lists = (frame for frame, thread_ids in self._in_memory if thread.id in thread_ids)
            if all(not marked_before(restarts[-1], frame) for frame in (*messages, *lists)):
                yield thread, thread.start

    def _shown_by(self, thread: KnownThread, request: Frame, *, by_status: bool) -> Frame | None:
        """Return the last message before a request that shows a thread as not loaded, or None."""
        messages = [frame for frame in thread.notifications if _says_unloaded(frame, thread.id)]
        if by_status:
            messages = [frame for frame in messages if frame.method != "thread/closed"]
        else:
            messages += [
                ask.answer for ask in thread.exchanges if _found_unloaded(ask) and ask.answer
            ]
        earlier = [frame for frame in messages if came_before(frame, request)]
        return by_arrival(earlier)[-1] if earlier else None

    def _may_be_loaded(self, thread: KnownThread, proof: Frame, until: Frame) -> bool:
        """Return whether the thread may have been loaded again since `proof`."""
        was_requested = any(
            ask.request.method not in _LEAVING
            and not ask.ended_before(proof)
            and came_before(ask.request, until)
            for ask in thread.exchanges
        )
        was_reported = any(
            came_before(proof, frame)
            and came_before(frame, until)
            and frame.method not in _PARTING
            and not _says_unloaded(frame, thread.id)
            for frame in thread.notifications
        )
        return was_requested or was_reported


def _says_unloaded(frame: Frame, thread_id: str) -> bool:
    """Return whether a notification says that a thread is not loaded.

    The payload of thread/closed is not shown: it concerns every thread that it names.
    """
    if frame.method == "thread/closed":
        return True
    params = obj(frame.params)
    changed = frame.method == "thread/status/changed" and params.get("threadId") == thread_id
    return changed and dig(params, "status", "type") == NOT_LOADED


def _found_unloaded(ask: Exchange) -> bool:
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
    that was answered by notLoaded, and after a restart, as long as clients only read and list the
    thread, and no message says that it was loaded. Left open: the status of loaded threads (by the
    specification, list and read show notLoaded for them too), threads of other clients.
    """

    @on_answer("thread/read", "thread/list")
    def on_thread_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        fields = {text(obj(field.value).get("id")): field for field in thread_members(frame)}
        threads = dict(
            [*self.threads_before_restart(request, frame), *self.unloaded_threads(request, frame)]
        )
        for thread, proof in threads.items():
            thread_field = fields.get(thread.id)
            status = dig(thread_field.value, "status", "type") if thread_field is not None else None
            if thread_field is None or not isinstance(status, str):
                continue
            frames = (proof, request, frame)
            if status == NOT_LOADED:
                yield Witness(thread.subject, frames)
                continue
            expected, also = f'"{NOT_LOADED}"', _unloaded_members(proof)
            status_field = thread_field.part("status", "type")
            yield wrong(thread.subject, frames, status_field, expected, also=also)


@rule(
    "status.not-loaded-not-in-memory",
    title="A thread that is notLoaded is not among those in memory",
    level=Level.MUST,
    needs=("subscription",),
)
class NotInMemory(_Unloaded):
    """Judges that thread/loaded/list names no thread whose status was reported as notLoaded.

    Judged as long as clients only read and list the thread since, and no message says that it was
    loaded again. Left open: a notLoaded that list or read shows, since by the specification they
    show it for loaded threads too; threads of other clients.
    """

    @on_answer("thread/loaded/list")
    def on_loaded_list(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        data = arr(dig(frame.result, "data"))
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        for thread, proof in self.unloaded_threads(request, frame, by_status=True):
            frames = (proof, request, frame)
            if thread.id in data:
                field, also = member(frame, "data", data.index(thread.id)), _unloaded_members(proof)
                yield wrong(thread.subject, frames, field, "no thread not loaded", also=also)
            elif dig(frame.result, "nextCursor") is None and "cursor" not in obj(request.params):
                yield Witness(thread.subject, frames)


def _unloaded_members(proof: Frame) -> tuple[Member, ...]:
    """Return the members by which a message says that a thread is not loaded."""
    if proof.method == "thread/status/changed":
        return (member(proof, "status", "type"),)
    return (member(proof, "status"),) if dig(proof.result, "status") == NOT_LOADED else ()


@rule(
    "thread.turns-unasked",
    title="thread/start and thread/list give no turns",
    level=Level.SHOULD,
)
class TurnsUnasked(Monitor):
    """Judges that thread/start and thread/list give no turns ("Thread", turns).

    Absent, null and [] are all right. A thread without an ended turn proves nothing.
    """

    @on_answer("thread/start", "thread/list")
    def on_thread_answer(self, frame: Frame) -> Outcomes:
        for field in thread_members(frame):
            thread = self.conversation.threads.get(text(obj(field.value).get("id")))
            turns = arr(dig(field.value, "turns"))
            subject = f"thread {text(obj(field.value).get('id'))}"
            if turns:
                expected = "no turns, since none can be asked for"
                yield wrong(subject, (frame,), field.part("turns"), expected)
            elif thread is not None and any(turn.completions for turn in thread.turns.values()):
                yield Witness(subject, (frame,))
