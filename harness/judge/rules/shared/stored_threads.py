"""The file of a thread, by what messages say and what was seen on disk, up to a moment.

Scenarios look at files by a step of their own, whose marks say what was there. Nobody can look at
the files of a server on another machine: from what was not found alone nothing follows.
"""

from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import Final

from harness.judge.rules.shared.subscriptions import Exchanges, thread_of_request, told_after
from harness.judge.rules.shared.view_queries import failed, threads_in
from harness.protocol.values import dig, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import FileSeen, MarkBody
from harness.trace.order import came_before, marked_before
from harness.trace.trace import B, Mark, Trace, marks_of

ARCHIVE: Final = "thread/archive"
UNARCHIVE: Final = "thread/unarchive"
# Requests that leave the file of a thread where it is.
_LOOKING: Final = ("thread/read", "thread/list", "thread/loaded/list", "thread/unsubscribe")


class Kept(StrEnum):
    """Places where a thread is kept.

    IN_USE: it was never archived. ARCHIVED, RESTORED: the last request about that was accepted, and
    it was told.
    """

    IN_USE = "in use"
    ARCHIVED = "archived"
    RESTORED = "restored"


@dataclass(frozen=True, slots=True)
class Storage:
    """The place of a thread, the request that put it there, its answer, and what was told of it."""

    kept: Kept
    frames: tuple[Frame, ...] = ()

    @property
    def request(self) -> Frame | None:
        """The request that brought it there, None for a thread that was never archived."""
        return self.frames[0] if self.frames else None


@dataclass(frozen=True, slots=True)
class ToldPath:
    """A path that a message told of a thread; `asked` is the request that it answers, if any."""

    thread_id: str
    path: str
    told: Frame
    asked: Frame | None


def exchanges_at(trace: Trace, mark: Mark[MarkBody]) -> Exchanges:
    """Return the exchanges before a mark."""
    last = None
    for frame in trace.frames:
        if marked_before(mark, frame):
            break
        last = frame
    return Exchanges(trace, last)


def told_paths(exchanges: Exchanges) -> list[ToldPath]:
    """Every path of a rollout file that was told, in order; none of an ephemeral thread."""
    found: list[ToldPath] = []
    for frame in exchanges.frames:
        answers = frame.kind is Kind.RESPONSE and not failed(frame)
        if not frame.from_target or not (answers or frame.method == "thread/started"):
            continue
        for thread in threads_in(frame):
            path, thread_id = text(thread.get("path")), text(thread.get("id"))
            if path and thread_id and thread.get("ephemeral") is not True:
                found.append(ToldPath(thread_id, path, frame, exchanges.request_of(frame)))
    return found


def storage_of(exchanges: Exchanges, thread_id: str) -> Storage | None:
    """Return the present storage of a thread; None if it is not certain.

    It is not while a request about it waits for its answer, or what it brings was not told; nor
    where an archived thread was asked for anything that may move its file again.
    """
    state, answered = Storage(Kept.IN_USE), None
    for request in exchanges.sent(ARCHIVE, UNARCHIVE):
        named = thread_of_request(request)
        if named not in ("", thread_id):
            continue
        answer = exchanges.answer_of(request)
        if answer is None or not named or (answered and not came_before(answered, request)):
            return None
        answered = answer
        if failed(answer):
            continue
        archives = request.method == ARCHIVE
        kept = Kept.ARCHIVED if archives else Kept.RESTORED
        if state.kept is kept:
            continue
        told = told_after(exchanges, f"{request.method}d", request)
        state = Storage(kept, (request, answer, *told[:1]))
    if state.kept is Kept.IN_USE:
        return state
    if len(state.frames) < 3 or (state.kept is Kept.ARCHIVED and _used(exchanges, state.frames[0])):
        return None
    return state


def _used(exchanges: Exchanges, archiving: Frame) -> bool:
    """Return whether a thread was asked for more than a look since it was archived."""
    thread_id = thread_of_request(archiving)
    return any(
        came_before(archiving, request)
        and thread_of_request(request) in ("", thread_id)
        and request.method not in (*_LOOKING, ARCHIVE, UNARCHIVE, "thread/start", "initialize")
        for request in exchanges.sent_any()
    )


def marks_until(trace: Trace, mark: Mark[MarkBody], body: type[B]) -> list[Mark[B]]:
    """The marks of a class that were made before a mark, in order."""
    before = takewhile(lambda other: other is not mark, trace.marks)
    return marks_of(before, body)


def at_rest(exchanges: Exchanges, thread_id: str, look: Mark[FileSeen], moving: Frame) -> bool:
    """Return whether nothing was asked for that can change the file of a thread after a look at it.

    No turn of the thread was in progress at the look, and between the look and the request that
    moved the file nothing was sent about the thread but what looks.
    """
    for request in exchanges.sent_any(before=moving):
        if thread_of_request(request) not in ("", thread_id):
            continue
        if marked_before(look, request) and request.method not in (*_LOOKING, ARCHIVE, UNARCHIVE):
            return False
        if request.method == "turn/start" and not _ended(exchanges, request, look):
            return False
    return True


def _ended(exchanges: Exchanges, request: Frame, look: Mark[FileSeen]) -> bool:
    """Return whether the turn of a turn/start had ended, or never began, before a look."""
    answer = exchanges.answer_of(request)
    if answer is None or marked_before(look, answer):
        return False
    turn_id = dig(answer.result, "turn", "id")
    return failed(answer) or any(
        frame.method == "turn/completed" and dig(frame.params, "turn", "id") == turn_id
        for frame in exchanges.frames
        if not marked_before(look, frame)
    )


def path_in(answer: Frame) -> str:
    """The path of the thread in an answer, "" where it tells none."""
    return text(dig(answer.result, "thread", "path"))
