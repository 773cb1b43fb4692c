"""Rules on threads: announcement, first status, ids, timestamps."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import re
from collections.abc import Iterator
from math import floor, isfinite

from harness.judge.base import (
    Monitor,
    Outcomes,
    Violation,
    Witness,
    on,
    on_answer,
    on_kind,
    on_sent,
    rule,
)
from harness.judge.rules.shared.view_queries import (
    failed,
    never_came,
    on_connection,
    request_subject,
    thread_members,
)
from harness.judge.rules.shared.violations import instead, member, refusal, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.owed import Owes

# Unix seconds reach this in the year 5138; milliseconds passed it in 1973.
MILLISECONDS_FROM = 1e11
# Minutes since 1970 passed this in 2020 and reach the other in 2100.
MINUTES_FROM = 1_577_836_800 / 60
MINUTES_TO = 4_102_444_800 / 60
# Unix seconds of September 2001.
OLDEST = 1e9

# The requests whose answers hold thread objects.
SHOWING = methods_with("shows-thread")

# The times of a thread object, and the requirement that each is in seconds.
_SECONDS = {"createdAt": "thread.created-seconds", "updatedAt": "thread.updated-seconds"}

# After these a thread may start again, in a sense: the params of some are not shown.
_REOPENING = methods_with("may-reload")

_THREAD_ID = re.compile(r"thr_\d+")


@rule("thread.started-announced", title="A started thread is announced once", level=Level.MUST)
class StartedAnnounced(Monitor):
    """Judges that thread/start emits exactly one thread/started, with the id of the reply.

    The notification may come before or after the reply. Left open: threads started by others in a
    shared process, forks (fork.announced), and how often a thread is announced that was put away or
    reopened (resume.not-announced).
    """

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> Outcomes:
        return self._judge(text(dig(frame.result, "thread", "id")), frame)

    @on("thread/started")
    def on_thread_started(self, frame: Frame) -> Outcomes:
        return self._judge(text(dig(frame.params, "thread", "id")), frame)

    def finish(self) -> Outcomes:
        for item in self.owed.open(Owes.THREAD_STARTED):
            asked = self.conversation.request_of(item.frame)
            if asked is not None and asked.method != "thread/start":
                continue
            where = on_connection(self.trace, item.frame)
            expected = f"thread/started for {item.subject}{where}"
            places = (member(item.frame, "thread", "id").place,)
            actual = never_came(self.trace)
            yield Violation(item.subject, (item.frame,), expected, actual, places=places)

    def _judge(self, thread_id: str, frame: Frame) -> Outcomes:
        thread = self.conversation.threads.get(thread_id)
        if thread is None or thread.reply is None or not thread.started:
            return None
        again = thread.started
        if len(again) > 1 and not self._reopened(thread_id):
            return [
                Violation(
                    thread.subject,
                    tuple(again),
                    f"one thread/started for {thread.subject}",
                    f"{len(again)} of them",
                    places=tuple(member(one, "thread", "id").place for one in again),
                )
            ]
        return [Witness(thread.subject, (thread.reply, again[0]))] if len(again) == 1 else None

    def _reopened(self, thread_id: str) -> bool:
        return any(
            request.method in _REOPENING
            and text(obj(request.params).get("threadId")) in ("", thread_id)
            for request in self.conversation.requests
        )


@rule("thread.starts-idle", title="A new thread is returned idle", level=Level.MUST)
class StartsIdle(Monitor):
    """Judges the status in the reply to thread/start ("Thread status": returned as idle).

    Left open: the status in thread/started (the text speaks of what is returned), and a status of
    another shape (shape.response speaks of that).
    """

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> Outcomes:
        thread = obj(dig(frame.result, "thread"))
        status = dig(thread, "status", "type")
        if frame.kind is not Kind.RESPONSE or not isinstance(status, str):
            return None
        subject = f"thread {text(thread.get('id'))}"
        if status == "idle":
            return [Witness(subject, (frame,))]
        where = member(frame, "thread", "status", "type")
        return [wrong(subject, (frame,), where, '"idle", since the thread is new')]


# The params of thread/start, all of which are optional.
START_PARAMS = frozenset(
    {"model", "modelProvider", "cwd", "approvalPolicy", "sandbox", "personality", "serviceName"}
)


@rule(
    "thread.start-without-params",
    title="A thread is started without the params that are optional",
    level=Level.MUST,
)
class StartWithoutParams(Monitor):
    """Judges that thread/start is not refused for params that were left out.

    A finding: the refusal of one without any params, by a server that had answered another request
    before (so that no handshake is missing) and had no other request to answer. It may have another
    reason, such as a limit: MUST where a thread/start with params is taken afterwards, else SHOULD.
    Left open: the refusal of one with any params, which may be wrong in themselves.
    """

    def begin(self) -> None:
        self._served = False
        self._busy: set[Frame] = set()
        self._refused: list[tuple[Frame, Frame]] = []

    @on_sent("thread/start")
    def on_thread_start_sent(self, frame: Frame) -> Outcomes:
        # This request itself is owed an answer too.
        if len(self.owed.open(Owes.ANSWER)) > 1:
            self._busy.add(frame)
        return None

    @on_sent("thread/unsubscribe", "thread/archive")
    def put_away(self, frame: Frame) -> Outcomes:
        """Note that there may be room again for what is taken afterwards."""
        yield from self._told(Level.SHOULD)

    @on_kind(Kind.RESPONSE)
    def on_response(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        self._served = self._served or request is not None
        return None

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate:
            return
        params = obj(request.params)
        if failed(frame):
            if not params and request not in self._busy and self._served:
                self._refused.append((request, frame))
            return
        if params:
            yield from self._told(Level.MUST)
        if not params.keys() >= START_PARAMS:
            yield Witness(request_subject(request), (request, frame))

    def finish(self) -> Outcomes:
        yield from self._told(Level.SHOULD)

    def _told(self, level: Level) -> Iterator[Violation]:
        for request, answer in self._refused:
            expected = "a thread, since no param of thread/start is required"
            frames = (request, answer)
            where = refusal(answer)
            yield instead(request_subject(request), frames, where, expected, level=level)
        self._refused.clear()


@rule("thread.ids-unique", title="Threads have different ids", level=Level.MUST)
class ThreadIdsUnique(Monitor):
    """Judges that two threads made by thread/start or thread/fork have two ids ("Thread": unique).

    Known only within one trace: threads of other runs and clients are not seen.
    """

    def begin(self) -> None:
        self._made: dict[str, Frame] = {}

    @on_answer("thread/start", "thread/fork")
    def made(self, frame: Frame) -> Outcomes:
        thread_id = text(dig(frame.result, "thread", "id"))
        request = self.conversation.request_of(frame)
        if not thread_id or request is None:
            return None
        first = self._made.setdefault(thread_id, frame)
        if first is not frame:
            # A second answer to one request is not a second thread (response.once).
            if self.conversation.request_of(first) is request:
                return None
            where, also = member(frame, "thread", "id"), (member(first, "thread", "id"),)
            frames = (first, frame)
            return [wrong(f"thread {thread_id}", frames, where, "a new id", also=also)]
        if len(self._made) == 1:
            return None
        return [Witness(f"thread {thread_id}", (*self._made.values(),))]


@rule("thread.timestamps-seconds", title="Thread timestamps are in seconds", level=Level.MUST)
class TimestampsSeconds(Monitor):
    """Judges createdAt and updatedAt of thread objects in replies and thread/started.

    A finding: a number that as Unix seconds lies beyond the year 5000, as milliseconds do, or that
    as minutes is of our time, and as seconds of the year 1970 or 1971. Any other that is before
    2001 is SHOULD: a clock may be wrong, and no clock is zero. Left open: whether the time is right
    (the server's clock is its own), fractions, and values that are no numbers (shapes speak of
    those).
    """

    @on("thread/started")
    def on_thread_started(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    @on_answer(*SHOWING)
    def on_showing_answer(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    def _judge(self, frame: Frame) -> Outcomes:
        for where in thread_members(frame):
            thread = obj(where.value)
            subject = f"thread {text(thread.get('id'))}"
            times = {key: thread.get(key) for key in _SECONDS}
            numbers = {key: at for key, at in times.items() if isinstance(at, int | float)}
            found = {key: why for key, at in numbers.items() if (why := _no_seconds(at))}
            for key, (why, level) in found.items():
                expected, clauses = f"Unix seconds, and {why}", (_SECONDS[key],)
                where_at = where.part(key)
                yield wrong(subject, (frame,), where_at, expected, level=level, clauses=clauses)
            if numbers and not found:
                yield Witness(subject, (frame,))


def _no_seconds(at: float) -> tuple[str, Level] | None:
    """Return why a number is not a time in Unix seconds, and how sure that is."""
    if not isfinite(at):
        return "this is no time at all", Level.MUST
    if at >= MILLISECONDS_FROM:
        return "these lie beyond the year 5000", Level.MUST
    if MINUTES_FROM <= at < MINUTES_TO:
        return "these lie near 1970, where minutes since then are of our time", Level.MUST
    if at < OLDEST:
        return "these lie before 2001, when no thread can have been made", Level.SHOULD
    return None


@rule(
    "thread.updated-not-before-created",
    title="A thread is not changed before it is created",
    level=Level.SHOULD,
)
class UpdatedNotBeforeCreated(Monitor):
    """Judges that updatedAt of a thread object is not less than its createdAt, in whole seconds.

    Wherever a thread object stands, stored ones too. Derived from what the two names mean: SHOULD.
    Left open: values that are no numbers (shapes) or no seconds (thread.timestamps-seconds),
    fractions, of which one of the two may have none, and whether either time is right.
    """

    once = True

    @on("thread/started")
    def on_thread_started(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    @on_answer(*SHOWING)
    def on_showing_answer(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    def _judge(self, frame: Frame) -> Outcomes:
        for where in thread_members(frame):
            thread = obj(where.value)
            created, updated = thread.get("createdAt"), thread.get("updatedAt")
            if not isinstance(created, int | float) or not isinstance(updated, int | float):
                continue
            if _no_seconds(created) or _no_seconds(updated):
                continue
            subject = f"thread {text(thread.get('id'))}"
            if floor(updated) >= floor(created):
                yield Witness(subject, (frame,))
            else:
                expected, also = "not before createdAt", (where.part("createdAt"),)
                yield wrong(subject, (frame,), where.part("updatedAt"), expected, also=also)


@rule("thread.id-shape", title="Thread ids look like thr_<n>", level=Level.SHOULD)
class ThreadIdShape(Monitor):
    """Judges ids of threads that this client started; one finding per trace.

    The shape stands only in a note on the field, and ids are opaque to clients: SHOULD.
    """

    once = True

    @on_answer("thread/start", "thread/fork")
    def made(self, frame: Frame) -> Outcomes:
        thread_id = text(dig(frame.result, "thread", "id"))
        if not thread_id:
            return None
        if _THREAD_ID.fullmatch(thread_id):
            return [Witness("thread ids", (frame,))]
        return [wrong("thread ids", (frame,), member(frame, "thread", "id"), "thr_<n>")]
