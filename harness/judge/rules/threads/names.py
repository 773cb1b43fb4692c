"""Rules on the name of a thread: the answer to thread/name/set, what is told, what is shown.

The params of thread/name/set are not shown; the name is read from the `name` that this harness
sends. Nor has the Thread of the text a member for it.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Final

from harness.judge.base import Monitor, Outcomes, Witness, on, on_answer, rule
from harness.judge.rules.shared.empty_replies import empty_reply
from harness.judge.rules.shared.subscriptions import Exchanges, thread_of_request
from harness.judge.rules.shared.telling_requests import TellingRequests
from harness.judge.rules.shared.view_queries import failed, thread_members, threads_in
from harness.judge.rules.shared.violations import Member, differs
from harness.judge.verdict import Level
from harness.protocol.spec.effects import methods_with
from harness.protocol.values import obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.order import came_before

SET: Final = "thread/name/set"
# So much of a name is certainly kept.
LONG: Final = 60
# The requests whose answers hold thread objects.
SHOWING: Final = methods_with("shows-thread")


@rule(
    "name.reply-empty",
    title="thread/name/set is answered with {}",
    level=Level.MUST,
    needs=("thread-name",),
)
class NameReply(Monitor):
    """Judges that a successful thread/name/set is answered with an empty object.

    Members beyond that are extra members, which nothing forbids: recorded as INFO.
    """

    @on_answer(SET)
    def on_set_answer(self, frame: Frame) -> Outcomes:
        if failed(frame):
            return None
        return empty_reply(self.conversation.request_of(frame), frame)


@rule(
    "name.told",
    title="That the name of a thread changed is told",
    level=Level.MUST,
    needs=("thread-name",),
)
class NameTold(TellingRequests):
    """Judges, at the end of a quiescent trace, that a change of a name had its thread/name/updated.

    A change is certain where the thread was started within the trace and had no name or another
    one: names that differ in white space or case alone may count as one. The payload is not shown:
    a message that names no thread can be about any. One connection that was told is enough; which
    one, and whether before the answer, is open. SHOULD where no client that is still connected
    followed the thread, INFO where all who did left it at once. Left open: forks and threads of
    other runs, which may have a name already, and a name that is empty.
    """

    told = "thread/name/updated"

    def owes(self, exchanges: Exchanges, request: Frame, answer: Frame) -> bool:
        accepted = exchanges.accepted_before(request, answer, SET)
        if accepted is None or not _plain(_name_in(request)):
            return False
        if accepted:
            return _plain(_name_in(accepted[-1])) not in ("", _plain(_name_in(request)))
        thread_id = thread_of_request(request)
        return exchanges.opened(thread_id, "thread/start", before=request)

    @on_answer(SET)
    def on_set_answer(self, frame: Frame) -> Outcomes:
        return self.accepted(frame)

    @on("thread/name/updated")
    def on_thread_name_updated(self, frame: Frame) -> Outcomes:
        return self.came(frame)


@rule(
    "name.shown",
    title="A thread is shown with the name that it was given",
    level=Level.SHOULD,
    needs=("thread-name",),
)
class NameShown(Monitor):
    """Judges the member `name` of a thread object, where a server has one.

    It should be the name of the last thread/name/set that was accepted before the thread was asked
    for; white space around it, and repeated, does not count. The text has no such member: SHOULD.
    Left open: a `name` that is null or missing, unless an earlier answer to the same method had it;
    threads that were named by nobody here, what is shown while a name is being set, and the end of
    a name beyond 60 characters.
    """

    @on_answer(*SHOWING)
    def on_showing_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE:
            return
        # Asked of each answer that shows a thread: most traces give no name.
        if not any(one.method == SET for one in self.trace.frames):
            return
        exchanges = Exchanges(self.trace, frame)
        for where in thread_members(frame):
            thread = obj(where.value)
            thread_id, name = text(thread.get("id")), text(thread.get("name"))
            last = _last_set(exchanges, thread_id, request, frame)
            if last is None or not _plain(_name_in(last)):
                continue
            subject, frames = f"thread {thread_id}", (last, frame)
            if _same(_name_in(last), name):
                yield Witness(subject, frames)
            elif name or _shown_before(exchanges, request, last, thread_id):
                given = (Member(last, ("params", "name")),)
                yield differs(
                    subject, frames, where.part("name"), _name_in(last), found=name, also=given
                )


def _shown_before(exchanges: Exchanges, request: Frame, last: Frame, thread_id: str) -> bool:
    """Return whether an earlier answer to the same method showed a thread with its name."""
    for other in exchanges.sent(request.method, before=request):
        answer = exchanges.answer_of(other)
        for thread in threads_in(answer) if answer is not None else ():
            mine = thread.get("id") == thread_id and came_before(last, other)
            if mine and _same(_name_in(last), text(thread.get("name"))):
                return True
    return False


def _last_set(exchanges: Exchanges, thread_id: str, request: Frame, answer: Frame) -> Frame | None:
    """The last accepted request that named a thread, None where none certainly was the last."""
    accepted = exchanges.accepted_before(request, answer, SET, thread_id=thread_id)
    return accepted[-1] if accepted else None


def _name_in(request: Frame) -> str:
    return text(obj(request.params).get("name"))


def _same(given: str, shown: str) -> bool:
    """Return whether a name is shown as it was given, or cut where it is long."""
    given, shown = _spaced(given), _spaced(shown)
    cut = shown.removesuffix("…").removesuffix("...").rstrip()
    return given == shown or (len(cut) >= LONG and given.startswith(cut))


def _spaced(name: str) -> str:
    return " ".join(name.split())


def _plain(name: str) -> str:
    return _spaced(name).casefold()
