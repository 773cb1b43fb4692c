"""Rules on the name of a thread: the answer to thread/name/set, its notification, its display.

The params of thread/name/set are not specified; the name is taken from the `name` that this harness
sends. The specified Thread has no member for it either.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Final

from harness.judge.base import Monitor, Outcomes, Witness, on, on_answer, rule
from harness.judge.rules.shared.announced_requests import AnnouncedRequests
from harness.judge.rules.shared.empty_replies import empty_reply
from harness.judge.rules.shared.subscriptions import Exchanges, thread_of_request
from harness.judge.rules.shared.view_queries import is_failure, thread_members, threads_in
from harness.judge.rules.shared.violations import Member, different
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.order import came_before

SET_NAME: Final = "thread/name/set"
# Characters of a name that are certainly kept.
LONG: Final = 60
# Requests whose answers contain thread objects.
SHOWING: Final = methods_with("shows-thread")


@rule(
    "name.reply-empty",
    title="thread/name/set is answered with {}",
    level=Level.MUST,
    needs=("thread-name",),
)
class NameReply(Monitor):
    """Judges that a successful thread/name/set is answered with an empty object.

    The specification does not forbid extra members: they are recorded as INFO.
    """

    @on_answer(SET_NAME)
    def on_set_answer(self, frame: Frame) -> Outcomes:
        if is_failure(frame):
            return None
        return empty_reply(self.conversation.request_of(frame), frame)


@rule(
    "name.told",
    title="A change of a thread's name is announced",
    level=Level.MUST,
    needs=("thread-name",),
)
class NameTold(AnnouncedRequests):
    """Judges, at the end of a quiescent trace, that a change of a name led to thread/name/updated.

    A change is certain if the thread was started in the trace and had no name or another one: names
    that differ only in white space or case may count as equal. The payload is not shown: a message
    without a thread id may be about any thread. A notification on one connection is enough; which
    one, and whether it comes before the answer, is open. SHOULD if no connected client followed the
    thread, INFO if all followers unsubscribed at once. Left open: forks and threads of other runs,
    which may have a name already, and an empty name.
    """

    notification = "thread/name/updated"

    def is_due(self, exchanges: Exchanges, request: Frame, answer: Frame) -> bool:
        accepted = exchanges.accepted_before(request, answer, SET_NAME)
        if accepted is None or not _plain(_name_in(request)):
            return False
        if accepted:
            return _plain(_name_in(accepted[-1])) not in ("", _plain(_name_in(request)))
        thread_id = thread_of_request(request)
        return exchanges.was_opened(thread_id, "thread/start", before=request)

    @on_answer(SET_NAME)
    def on_set_answer(self, frame: Frame) -> Outcomes:
        return self.add_accepted(frame)

    @on("thread/name/updated")
    def on_thread_name_updated(self, frame: Frame) -> Outcomes:
        return self.judge_until(frame)


@rule(
    "name.shown",
    title="A thread is shown with its name",
    level=Level.SHOULD,
    needs=("thread-name",),
)
class NameShown(Monitor):
    """Judges the member `name` of a thread object, if a server has one.

    It should be the name of the last thread/name/set that was accepted before the request;
    surrounding and repeated white space does not count. The specification has no such member:
    SHOULD. Left open: a `name` that is null or missing, unless an earlier answer to the same method
    had it; threads that were not named here, answers during a thread/name/set, and the end of a
    name beyond 60 characters.
    """

    @on_answer(*SHOWING)
    def on_showing_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        # This runs for each answer that shows a thread: most traces set no name.
        if not any(message.method == SET_NAME for message in self.trace.frames):
            return
        exchanges = Exchanges(self.trace, frame)
        for field in thread_members(frame):
            thread = obj(field.value)
            thread_id, name = text(thread.get("id")), text(thread.get("name"))
            last = _last_set(exchanges, thread_id, request, frame)
            if last is None or not _plain(_name_in(last)):
                continue
            subject, frames = f"thread {thread_id}", (last, frame)
            if _is_same(_name_in(last), name):
                yield Witness(subject, frames)
            elif name or _shown_before(exchanges, request, last, thread_id):
                name_given = (Member(last, ("params", "name")),)
                yield different(
                    subject, frames, field.part("name"), _name_in(last), value=name, also=name_given
                )


def _shown_before(exchanges: Exchanges, request: Frame, last: Frame, thread_id: str) -> bool:
    """Return whether an earlier answer to the same method showed a thread with its name."""
    for other in exchanges.requests(request.method, before=request):
        answer = exchanges.answer_of(other)
        for thread in threads_in(answer) if answer is not None else ():
            is_this_thread = thread.get("id") == thread_id and came_before(last, other)
            if is_this_thread and _is_same(_name_in(last), text(thread.get("name"))):
                return True
    return False


def _last_set(exchanges: Exchanges, thread_id: str, request: Frame, answer: Frame) -> Frame | None:
    """Return the last accepted request that named a thread; None for none or an uncertain order."""
    accepted = exchanges.accepted_before(request, answer, SET_NAME, thread_id=thread_id)
    return accepted[-1] if accepted else None


def _name_in(request: Frame) -> str:
    return text(obj(request.params).get("name"))


def _is_same(name: str, shown_name: str) -> bool:
    """Return whether a name is shown as it was set, or truncated if it is long."""
    name, shown_name = _normalize_spaces(name), _normalize_spaces(shown_name)
    cut = shown_name.removesuffix("…").removesuffix("...").rstrip()
    return name == shown_name or (len(cut) >= LONG and name.startswith(cut))


def _normalize_spaces(name: str) -> str:
    return " ".join(name.split())


def _plain(name: str) -> str:
    return _normalize_spaces(name).casefold()
