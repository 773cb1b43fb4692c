"""Storage of a thread in its file, as messages and the file checks of scenarios show it.

A step of a scenario looks at a file, and its mark records the result. The files of a server on
another machine cannot be seen, so a missing file alone proves nothing.
"""

from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import Final

from harness.judge.rules.shared.subscriptions import (
    Exchanges,
    notifications_after,
    thread_of_request,
)
from harness.judge.rules.shared.view_queries import is_failure, threads_in
from harness.protocol.values import dig, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import FileSeen, MarkBody
from harness.trace.order import came_before, marked_before
from harness.trace.trace import B, Mark, Trace, marks_of

ARCHIVE: Final = "thread/archive"
UNARCHIVE: Final = "thread/unarchive"
# Requests that leave the file of a thread where it is.
_LOOKING: Final = ("thread/read", "thread/list", "thread/loaded/list", "thread/unsubscribe")


class StoragePlace(StrEnum):
    """Places where a thread is stored.

    IN_USE: it was never archived. ARCHIVED, RESTORED: the last request to move it was accepted and
    announced.
    """

    IN_USE = "in use"
    ARCHIVED = "archived"
    RESTORED = "restored"


@dataclass(frozen=True, slots=True)
class Storage:
    """The place of a thread, with the request that moved it, its answer and notification."""

    place: StoragePlace
    frames: tuple[Frame, ...] = ()

    @property
    def request(self) -> Frame | None:
        """Return the request that moved the thread there, None if it was never archived."""
        return self.frames[0] if self.frames else None


@dataclass(frozen=True, slots=True)
class ReportedPath:
    """A path of a thread in a message; `request` is the one that the message answers, if any."""

    thread_id: str
    path: str
    message: Frame
    request: Frame | None


def exchanges_at(trace: Trace, mark: Mark[MarkBody]) -> Exchanges:
    """Return the requests and answers before a mark."""
    last = None
    for frame in trace.frames:
        if marked_before(mark, frame):
            break
        last = frame
    return Exchanges(trace, last)


def reported_paths(exchanges: Exchanges) -> list[ReportedPath]:
    """Return every reported rollout path in order, without those of ephemeral threads."""
    paths: list[ReportedPath] = []
    for frame in exchanges.frames:
        answers = frame.kind is Kind.RESPONSE and not is_failure(frame)
        if not frame.from_target or not (answers or frame.method == "thread/started"):
            continue
        for thread in threads_in(frame):
            path, thread_id = text(thread.get("path")), text(thread.get("id"))
            if path and thread_id and thread.get("ephemeral") is not True:
                paths.append(ReportedPath(thread_id, path, frame, exchanges.request_of(frame)))
    return paths


def storage_of(exchanges: Exchanges, thread_id: str) -> Storage | None:
    """Return where a thread is stored after these exchanges, None if it is uncertain.

    Uncertain: a request to move it is unanswered, its notification is missing, or a request after
    archiving may have moved the file again.
    """
    state, answered = Storage(StoragePlace.IN_USE), None
    for request in exchanges.requests(ARCHIVE, UNARCHIVE):
        thread_named = thread_of_request(request)
        if thread_named not in ("", thread_id):
            continue
        answer = exchanges.answer_of(request)
        if answer is None or not thread_named or (answered and not came_before(answered, request)):
            return None
        answered = answer
        if is_failure(answer):
            continue
        archives = request.method == ARCHIVE
        place = StoragePlace.ARCHIVED if archives else StoragePlace.RESTORED
        if state.place is place:
            continue
        notifications = notifications_after(exchanges, f"{request.method}d", request)
        state = Storage(place, (request, answer, *notifications[:1]))
    if state.place is StoragePlace.IN_USE:
        return state
    if len(state.frames) < 3 or (
        state.place is StoragePlace.ARCHIVED and _was_used(exchanges, state.frames[0])
    ):
        return None
    return state


def _was_used(exchanges: Exchanges, archiving: Frame) -> bool:
    """Return whether a request since the archiving may have done more than read the thread."""
    thread_id = thread_of_request(archiving)
    return any(
        came_before(archiving, request)
        and thread_of_request(request) in ("", thread_id)
        and request.method not in (*_LOOKING, ARCHIVE, UNARCHIVE, "thread/start", "initialize")
        for request in exchanges.all_requests()
    )


def marks_until(trace: Trace, mark: Mark[MarkBody], body: type[B]) -> list[Mark[B]]:
    """Return the marks of a class before a mark, in order."""
    before = takewhile(lambda other: other is not mark, trace.marks)
    return marks_of(before, body)


def is_at_rest(exchanges: Exchanges, thread_id: str, look: Mark[FileSeen], moving: Frame) -> bool:
    """Return whether no request can have changed the file of a thread after a look at it.

    No turn of the thread was in progress at the look, and only reading requests named it between
    the look and the request that moved the file.
    """
    for request in exchanges.all_requests(before=moving):
        if thread_of_request(request) not in ("", thread_id):
            continue
        if marked_before(look, request) and request.method not in (*_LOOKING, ARCHIVE, UNARCHIVE):
            return False
        if request.method == "turn/start" and not _has_ended(exchanges, request, look):
            return False
    return True


def _has_ended(exchanges: Exchanges, request: Frame, look: Mark[FileSeen]) -> bool:
    """Return whether the turn of a turn/start had ended, or never began, before a look."""
    answer = exchanges.answer_of(request)
    if answer is None or marked_before(look, answer):
        return False
    turn_id = dig(answer.result, "turn", "id")
    return is_failure(answer) or any(
        frame.method == "turn/completed" and dig(frame.params, "turn", "id") == turn_id
        for frame in exchanges.frames
        if not marked_before(look, frame)
    )


def path_in(answer: Frame) -> str:
    """Return the path of the thread in an answer, "" if it has none."""
    return text(dig(answer.result, "thread", "path"))
