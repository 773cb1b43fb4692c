"""Rules on archiving and restoring: the answers and the notifications.

The specification shows the params of thread/archived only; any other of these messages without a
thread id may be about any thread.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Final

from harness.judge.base import Monitor, Outcomes, Witness, on, on_answer, rule
from harness.judge.rules.shared.announced_requests import AnnouncedRequests
from harness.judge.rules.shared.empty_replies import empty_reply
from harness.judge.rules.shared.subscriptions import Exchanges, thread_of_request
from harness.judge.rules.shared.view_queries import is_failure
from harness.judge.rules.shared.violations import member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import dig
from harness.trace.frame import Frame, Kind

ARCHIVE: Final = "thread/archive"
UNARCHIVE: Final = "thread/unarchive"


@rule(
    "archive.reply-empty",
    title="thread/archive is answered with {}",
    level=Level.MUST,
    needs=("archive",),
)
class ArchiveReply(Monitor):
    """Judges that a successful thread/archive is answered with an empty object.

    The specification does not forbid extra members: they are recorded as INFO.
    """

    @on_answer(ARCHIVE)
    def on_archive_answer(self, frame: Frame) -> Outcomes:
        if is_failure(frame):
            return None
        return empty_reply(self.conversation.request_of(frame), frame)


@rule(
    "unarchive.restored-thread",
    title="thread/unarchive returns the requested thread",
    level=Level.MUST,
    needs=("archive",),
)
class RestoredThread(Monitor):
    """Judges that the thread in the answer to thread/unarchive has the requested id.

    Left open: requests without a `threadId`, since the params are not shown, and an answer without
    a thread (shapes).
    """

    @on_answer(UNARCHIVE)
    def on_unarchive_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE or is_failure(frame):
            return None
        requested, returned = thread_of_request(request), dig(frame.result, "thread", "id")
        if not requested or not isinstance(returned, str):
            return None
        subject, frames = f"thread {requested}", (request, frame)
        if returned == requested:
            return [Witness(subject, frames)]
        return [wrong(subject, frames, member(frame, "thread", "id"), f'"{requested}"')]


@rule(
    "archive.told",
    title="Archiving a thread is announced",
    level=Level.MUST,
    needs=("archive",),
)
class ArchiveTold(AnnouncedRequests):
    """Judges, at the end of a quiescent trace, that thread/archive was followed by thread/archived.

    Only for a thread that was started, resumed or forked in the trace, and was not archived before.
    A notification on one connection is enough; which one, and whether it comes before the answer,
    is open. SHOULD if no connected client followed the thread, INFO if all followers unsubscribed
    at once.
    """

    notification = "thread/archived"

    def is_due(self, exchanges: Exchanges, request: Frame, answer: Frame) -> bool:
        return archived_before(exchanges, request, answer) is False

    @on_answer(ARCHIVE)
    def on_archive_answer(self, frame: Frame) -> Outcomes:
        return self.add_accepted(frame)

    @on("thread/archived")
    def on_thread_archived(self, frame: Frame) -> Outcomes:
        return self.judge_until(frame)


@rule(
    "unarchive.told",
    title="Restoring a thread is announced",
    level=Level.MUST,
    needs=("archive",),
)
class UnarchiveTold(AnnouncedRequests):
    """Judges, at the end of a quiescent trace, that thread/unarchive led to thread/unarchived.

    Only for a thread that was archived in the trace. The payload is not shown: a message without a
    thread id may be about any thread. A notification on one connection is enough; which one, and
    whether it comes before the answer, is open. SHOULD if no connected client followed the thread,
    INFO if all followers unsubscribed at once.
    """

    notification = "thread/unarchived"

    def is_due(self, exchanges: Exchanges, request: Frame, answer: Frame) -> bool:
        return archived_before(exchanges, request, answer) is True

    @on_answer(UNARCHIVE)
    def on_unarchive_answer(self, frame: Frame) -> Outcomes:
        return self.add_accepted(frame)

    @on("thread/unarchived")
    def on_thread_unarchived(self, frame: Frame) -> Outcomes:
        return self.judge_until(frame)


def archived_before(exchanges: Exchanges, request: Frame, answer: Frame) -> bool | None:
    """Return whether a request found its thread in the archive, None if that is uncertain.

    It is certain if the thread was opened in the trace, and every other request to archive or
    restore it that was sent before the answer had been answered when this one was sent.
    """
    thread_id = thread_of_request(request)
    accepted = exchanges.accepted_before(request, answer, ARCHIVE, UNARCHIVE)
    if accepted is None:
        return None
    if not accepted:
        return False if exchanges.was_opened(thread_id, before=request) else None
    return accepted[-1].method == ARCHIVE
