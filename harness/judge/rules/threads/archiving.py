"""Rules on archiving and its reverse: the answers, and what is told of it.

The text shows the params of thread/archived alone; of the others a message that names no thread can
be about any.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Final

from harness.judge.base import Monitor, Outcomes, Witness, on, on_answer, rule
from harness.judge.rules.shared.empty_replies import empty_reply
from harness.judge.rules.shared.subscriptions import Exchanges, thread_of_request
from harness.judge.rules.shared.telling_requests import TellingRequests
from harness.judge.rules.shared.view_queries import failed
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

    Members beyond that are extra members, which nothing forbids: recorded as INFO.
    """

    @on_answer(ARCHIVE)
    def on_archive_answer(self, frame: Frame) -> Outcomes:
        if failed(frame):
            return None
        return empty_reply(self.conversation.request_of(frame), frame)


@rule(
    "unarchive.restored-thread",
    title="thread/unarchive returns the thread that was asked for",
    level=Level.MUST,
    needs=("archive",),
)
class RestoredThread(Monitor):
    """Judges that the thread in the answer to thread/unarchive has the id that was asked for.

    Left open: requests that name no thread by `threadId`, since the params are not shown, and an
    answer without a thread (shapes).
    """

    @on_answer(UNARCHIVE)
    def on_unarchive_answer(self, frame: Frame) -> Outcomes:
        request = self.conversation.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE or failed(frame):
            return None
        asked, given = thread_of_request(request), dig(frame.result, "thread", "id")
        if not asked or not isinstance(given, str):
            return None
        subject, frames = f"thread {asked}", (request, frame)
        if given == asked:
            return [Witness(subject, frames)]
        return [wrong(subject, frames, member(frame, "thread", "id"), f'"{asked}"')]


@rule(
    "archive.told",
    title="That a thread was archived is told",
    level=Level.MUST,
    needs=("archive",),
)
class ArchiveTold(TellingRequests):
    """Judges, at the end of a quiescent trace, that thread/archive was followed by thread/archived.

    Of a thread that was started, resumed or forked within the trace, and was not in the archive
    before. One connection that was told is enough; which one, and whether before the answer, is
    open. SHOULD where no client that is still connected followed the thread, INFO where all who did
    left it at once.
    """

    told = "thread/archived"

    def owes(self, exchanges: Exchanges, request: Frame, answer: Frame) -> bool:
        return archived_before(exchanges, request, answer) is False

    @on_answer(ARCHIVE)
    def on_archive_answer(self, frame: Frame) -> Outcomes:
        return self.accepted(frame)

    @on("thread/archived")
    def on_thread_archived(self, frame: Frame) -> Outcomes:
        return self.came(frame)


@rule(
    "unarchive.told",
    title="That a thread was taken out of the archive is told",
    level=Level.MUST,
    needs=("archive",),
)
class UnarchiveTold(TellingRequests):
    """Judges, at the end of a quiescent trace, that thread/unarchive had its thread/unarchived.

    Of a thread that was archived within the trace. The payload is not shown: a message that names
    no thread can be about any. One connection that was told is enough; which one, and whether
    before the answer, is open. SHOULD where no client that is still connected followed the thread,
    INFO where all who did left it at once.
    """

    told = "thread/unarchived"

    def owes(self, exchanges: Exchanges, request: Frame, answer: Frame) -> bool:
        return archived_before(exchanges, request, answer) is True

    @on_answer(UNARCHIVE)
    def on_unarchive_answer(self, frame: Frame) -> Outcomes:
        return self.accepted(frame)

    @on("thread/unarchived")
    def on_thread_unarchived(self, frame: Frame) -> Outcomes:
        return self.came(frame)


def archived_before(exchanges: Exchanges, request: Frame, answer: Frame) -> bool | None:
    """Return whether a request found its thread in the archive; None where that is not certain.

    It is certain where the thread was opened within the trace, and every other request to archive
    it or to take it out that was sent before the answer had been answered when this one was sent.
    """
    thread_id = thread_of_request(request)
    accepted = exchanges.accepted_before(request, answer, ARCHIVE, UNARCHIVE)
    if accepted is None:
        return None
    if not accepted:
        return False if exchanges.opened(thread_id, before=request) else None
    return accepted[-1].method == ARCHIVE
