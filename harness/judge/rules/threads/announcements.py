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
    connection_suffix,
    describe_silence,
    is_failure,
    request_subject,
    thread_members,
)
from harness.judge.rules.shared.violations import member, refusal_member, unexpected_member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.obligations import ObligationKind

# Unix seconds reach this in the year 5138; milliseconds passed it in 1973.
MILLISECONDS_FROM = 1e11
# Minutes since 1970 passed the first in 2020 and reach the second in 2100.
MINUTES_FROM = 1_577_836_800 / 60
MINUTES_TO = 4_102_444_800 / 60
# Unix seconds of September 2001.
OLDEST = 1e9

# Requests whose answers contain thread objects.
SHOWING = methods_with("shows-thread")

# The times of a thread object, each with the requirement that it is in seconds.
_SECONDS = {"createdAt": "thread.created-seconds", "updatedAt": "thread.updated-seconds"}

# Requests after which a thread may be announced again; the params of some are not shown.
_REOPENING = methods_with("may-reload")

_THREAD_ID = re.compile(r"thr_\d+")


@rule("thread.started-announced", title="A started thread is announced once", level=Level.MUST)
class StartedAnnounced(Monitor):
    """Judges that thread/start emits exactly one thread/started, with the id of the reply.

    The notification may come before or after the reply. Left open: threads that other clients
    started in a shared process, forks (fork.announced), and repeated announcements of a thread that
    was archived, closed or resumed (resume.not-announced).
    """

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> Outcomes:
        return self._judge(text(dig(frame.result, "thread", "id")), frame)

    @on("thread/started")
    def on_thread_started(self, frame: Frame) -> Outcomes:
        return self._judge(text(dig(frame.params, "thread", "id")), frame)

    def finish(self) -> Outcomes:
        for item in self.owed.open_obligations(ObligationKind.THREAD_STARTED):
            request = self.conversation.request_of(item.frame)
            if request is not None and request.method != "thread/start":
                continue
            suffix = connection_suffix(self.trace, item.frame)
            expected = f"thread/started for {item.subject}{suffix}"
            places = (member(item.frame, "thread", "id").place,)
            actual = describe_silence(self.trace)
            yield Violation(item.subject, (item.frame,), expected, actual, places=places)

    def _judge(self, thread_id: str, frame: Frame) -> Outcomes:
        thread = self.conversation.threads.get(thread_id)
        if thread is None or thread.reply is None or not thread.starts:
            return None
        again = thread.starts
        if len(again) > 1 and not self._may_be_reopened(thread_id):
            return [
                Violation(
                    thread.subject,
                    tuple(again),
                    f"one thread/started for {thread.subject}",
                    f"{len(again)} of them",
                    places=tuple(member(message, "thread", "id").place for message in again),
                )
            ]
        return [Witness(thread.subject, (thread.reply, again[0]))] if len(again) == 1 else None

    def _may_be_reopened(self, thread_id: str) -> bool:
        return any(
            request.method in _REOPENING
            and text(obj(request.params).get("threadId")) in ("", thread_id)
            for request in self.conversation.requests
        )


@rule("thread.starts-idle", title="A new thread is returned idle", level=Level.MUST)
class StartsIdle(Monitor):
    """Judges the status in the reply to thread/start ("Thread status": returned as idle).

    Left open: the status in thread/started (the specification is about the returned one), and a
    status of another shape (shape.response).
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
        field = member(frame, "thread", "status", "type")
        return [wrong(subject, (frame,), field, '"idle", since the thread is new')]


# The optional params of thread/start.
START_PARAMS = frozenset(
    {"model", "modelProvider", "cwd", "approvalPolicy", "sandbox", "personality", "serviceName"}
)


@rule(
    "thread.start-without-params",
    title="A thread starts without the optional params",
    level=Level.MUST,
)
class StartWithoutParams(Monitor):
    """Judges that thread/start is not rejected for params that were omitted.

    A finding: the rejection of a thread/start without any params, by a server that had answered
    another request before (so the handshake is done) and had no other request to answer. It may
    have another reason, such as a limit: MUST if a thread/start with params is accepted afterwards,
    else SHOULD. Left open: the rejection of a thread/start with params, which may be invalid.
    """

    def begin(self) -> None:
        self._has_answered = False
        self._overlapping: set[Frame] = set()
        self._rejections: list[tuple[Frame, Frame]] = []

    @on_sent("thread/start")
    def on_thread_start_sent(self, frame: Frame) -> Outcomes:
        # One of the open answers is that to this request.
        if len(self.owed.open_obligations(ObligationKind.ANSWER)) > 1:
            self._overlapping.add(frame)
        return None

    @on_sent("thread/unsubscribe", "thread/archive")
    def on_thread_put_away(self, frame: Frame) -> Outcomes:
        """Report the rejections so far as SHOULD: the server may accept more threads from now."""
        yield from self._report_refusals(Level.SHOULD)

    @on_kind(Kind.RESPONSE)
    def on_response(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        self._has_answered = self._has_answered or request is not None
        return None

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or request.deliberate:
            return
        params = obj(request.params)
        if is_failure(frame):
            if not params and request not in self._overlapping and self._has_answered:
                self._rejections.append((request, frame))
            return
        if params:
            yield from self._report_refusals(Level.MUST)
        if not params.keys() >= START_PARAMS:
            yield Witness(request_subject(request), (request, frame))

    def finish(self) -> Outcomes:
        yield from self._report_refusals(Level.SHOULD)

    def _report_refusals(self, level: Level) -> Iterator[Violation]:
        for request, answer in self._rejections:
            expected = "a thread, since no param of thread/start is required"
            frames = (request, answer)
            field = refusal_member(answer)
            yield unexpected_member(request_subject(request), frames, field, expected, level=level)
        self._rejections.clear()


@rule("thread.ids-unique", title="Threads have different ids", level=Level.MUST)
class ThreadIdsUnique(Monitor):
    """Judges that two threads made by thread/start or thread/fork have two ids ("Thread": unique).

    Judged within one trace: threads of other runs and clients are unknown.
    """

    def begin(self) -> None:
        self._first_answers: dict[str, Frame] = {}

    @on_answer("thread/start", "thread/fork")
    def on_thread_made(self, frame: Frame) -> Outcomes:
        thread_id = text(dig(frame.result, "thread", "id"))
        request = self.conversation.request_of(frame)
        if not thread_id or request is None:
            return None
        first = self._first_answers.setdefault(thread_id, frame)
        if first is not frame:
            # A second answer to one request is not a second thread (response.once).
            if self.conversation.request_of(first) is request:
                return None
            field, also = member(frame, "thread", "id"), (member(first, "thread", "id"),)
            frames = (first, frame)
            return [wrong(f"thread {thread_id}", frames, field, "a new id", also=also)]
        if len(self._first_answers) == 1:
            return None
        return [Witness(f"thread {thread_id}", (*self._first_answers.values(),))]


@rule("thread.timestamps-seconds", title="Thread timestamps are in seconds", level=Level.MUST)
class TimestampsSeconds(Monitor):
    """Judges createdAt and updatedAt of thread objects in replies and thread/started.

    A finding: a number that is beyond the year 5000 as Unix seconds, as milliseconds are, or that
    is in 1970 or 1971 as seconds and in our time as minutes. Any other time before 2001 is SHOULD:
    a clock may be wrong, but not unset. Left open: whether the time is right (the server has its
    own clock), fractions, and values that are not numbers (shapes).
    """

    @on("thread/started")
    def on_thread_started(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    @on_answer(*SHOWING)
    def on_showing_answer(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    def _judge(self, frame: Frame) -> Outcomes:
        for field in thread_members(frame):
            thread = obj(field.value)
            subject = f"thread {text(thread.get('id'))}"
            times = {key: thread.get(key) for key in _SECONDS}
            numbers = {key: time for key, time in times.items() if isinstance(time, int | float)}
            reasons = {
                key: reason for key, time in numbers.items() if (reason := _why_not_seconds(time))
            }
            for key, (reason, level) in reasons.items():
                expected, clauses = f"Unix seconds, and {reason}", (_SECONDS[key],)
                where_at = field.part(key)
                yield wrong(subject, (frame,), where_at, expected, level=level, clauses=clauses)
            if numbers and not reasons:
                yield Witness(subject, (frame,))


def _why_not_seconds(time: float) -> tuple[str, Level] | None:
    """Return the reason why a number is not Unix seconds, with its level; None if it may be."""
    if not isfinite(time):
        return "this is no time at all", Level.MUST
    if time >= MILLISECONDS_FROM:
        return "these lie beyond the year 5000", Level.MUST
    if MINUTES_FROM <= time < MINUTES_TO:
        return "these lie near 1970, where minutes since then are of our time", Level.MUST
    if time < OLDEST:
        return "these lie before 2001, when no thread can have been made", Level.SHOULD
    return None


@rule(
    "thread.updated-not-before-created",
    title="A thread is not changed before it is created",
    level=Level.SHOULD,
)
class UpdatedNotBeforeCreated(Monitor):
    """Judges that updatedAt of a thread object is not less than its createdAt, in whole seconds.

    Judged for every thread object, stored ones too. Derived from the two names: SHOULD. Left open:
    values that are not numbers (shapes) or not seconds (thread.timestamps-seconds), fractions,
    which only one of the two may have, and whether either time is right.
    """

    once = True

    @on("thread/started")
    def on_thread_started(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    @on_answer(*SHOWING)
    def on_showing_answer(self, frame: Frame) -> Outcomes:
        return self._judge(frame)

    def _judge(self, frame: Frame) -> Outcomes:
        for field in thread_members(frame):
            thread = obj(field.value)
            created, updated = thread.get("createdAt"), thread.get("updatedAt")
            if not isinstance(created, int | float) or not isinstance(updated, int | float):
                continue
            if _why_not_seconds(created) or _why_not_seconds(updated):
                continue
            subject = f"thread {text(thread.get('id'))}"
            if floor(updated) >= floor(created):
                yield Witness(subject, (frame,))
            else:
                expected, also = "not before createdAt", (field.part("createdAt"),)
                yield wrong(subject, (frame,), field.part("updatedAt"), expected, also=also)


@rule("thread.id-shape", title="Thread ids look like thr_<n>", level=Level.SHOULD)
class ThreadIdShape(Monitor):
    """Judges that ids of threads that this client made look like thr_<n>; one finding per trace.

    The shape is only in a note on the field, and ids are opaque to clients: SHOULD.
    """

    once = True

    @on_answer("thread/start", "thread/fork")
    def on_thread_made(self, frame: Frame) -> Outcomes:
        thread_id = text(dig(frame.result, "thread", "id"))
        if not thread_id:
            return None
        if _THREAD_ID.fullmatch(thread_id):
            return [Witness("thread ids", (frame,))]
        return [wrong("thread ids", (frame,), member(frame, "thread", "id"), "thr_<n>")]
