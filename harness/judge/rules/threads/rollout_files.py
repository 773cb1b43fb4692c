"""Rules on the rollout file of a thread: its place, and its move by archiving.

Scenarios look at files; a look is a `FileSeen` mark. Nothing is judged if no look ever found a file
or its folder: the server may run on another machine.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harness.judge.base import Monitor, Outcome, Outcomes, Violation, Witness, on_mark, rule
from harness.judge.rules.shared.stored_threads import (
    ReportedPath,
    Storage,
    StoragePlace,
    exchanges_at,
    is_at_rest,
    marks_until,
    path_in,
    reported_paths,
    storage_of,
)
from harness.judge.rules.shared.subscriptions import Exchanges, thread_of_request
from harness.judge.rules.shared.violations import Member, member
from harness.judge.verdict import Level, Place
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame, Kind
from harness.trace.marks import FileSeen, StepBegins
from harness.trace.order import came_before, marked_before
from harness.trace.trace import Mark

READ: Final = "thread/read"


@rule(
    "rollout.at-its-path",
    title="The rollout file of a thread lies at its path",
    level=Level.MUST,
    needs=("storage",),
)
class AtItsPath(Monitor):
    """Judges that a file is at the last reported path of a thread with an ended turn.

    Judged whenever a scenario looks at that path. The specification does not say when a server
    writes the file: MUST if a thread/read had shown that turn, since those turns come from the
    rollout history, or the server was restarted; else SHOULD. Left open: threads without a reported
    end of a turn, paths reported before or while the thread was archived or restored.
    """

    @on_mark(FileSeen)
    def on_file_seen(self, mark: Mark[FileSeen]) -> Outcomes:
        exchanges = exchanges_at(self.trace, mark)
        for reported in _last_reported(exchanges):
            if not _is_at(reported.path, mark) or storage_of(exchanges, reported.thread_id) is None:
                continue
            ended = _ended_turn(exchanges, reported.thread_id)
            if ended is None:
                continue
            subject, frames = f"thread {reported.thread_id}", (reported.message,)
            if mark.body.exists:
                yield Witness(subject, frames)
            elif mark.body.folder or any(
                look.body.exists for look in marks_until(self.trace, mark, FileSeen)
            ):
                level = None if self._was_stored(exchanges, mark, reported, ended) else Level.SHOULD
                field, actual = _path_member(reported), "no file is there"
                expected = f"{field.name}: the path of a file, since a turn of {subject} has ended"
                actual_text = f"{field}; {actual}"
                yield Violation(
                    subject, frames, expected, actual_text, level, places=(field.place,)
                )

    def _was_stored(
        self, exchanges: Exchanges, mark: Mark[FileSeen], reported: ReportedPath, ended: Frame
    ) -> bool:
        """Return whether the ended turn was certainly in the rollout history before a look."""
        turn_id = dig(ended.params, "turn", "id")
        for request in exchanges.requests(READ):
            result = getattr(exchanges.answer_of(request), "result", None)
            is_same_thread = thread_of_request(request) == reported.thread_id
            turns = arr(dig(result, "thread", "turns")) if is_same_thread else []
            if any(obj(turn).get("id") == turn_id for turn in turns):
                return True
        steps = marks_until(self.trace, mark, StepBegins)
        return any(s.body.name == "restart" and not marked_before(s, ended) for s in steps)


class _Moves(Monitor):
    """Base of rules on the files of archived or restored threads."""

    def threads_seen(
        self, mark: Mark[FileSeen], place: StoragePlace
    ) -> list[tuple[str, Storage, Exchanges]]:
        """Return the threads in this place at one of whose reported paths a scenario looked."""
        exchanges = exchanges_at(self.trace, mark)
        threads = {t.thread_id for t in reported_paths(exchanges) if _is_at(t.path, mark)}
        threads_found: list[tuple[str, Storage, Exchanges]] = []
        for thread_id in sorted(threads):
            state = storage_of(exchanges, thread_id)
            if state is not None and state.place is place:
                threads_found.append((thread_id, state, exchanges))
        return threads_found

    def last_seen(
        self, mark: Mark[FileSeen], exchanges: Exchanges, thread_id: str, before: Frame
    ) -> "_Former | None":
        """Return the file of a thread as last seen before a request, None if it was never seen."""
        paths = [
            reported.path
            for reported in reported_paths(exchanges)
            if reported.thread_id == thread_id
        ]
        for look in reversed(marks_until(self.trace, mark, FileSeen)):
            is_look_at_thread = any(_is_at(path, look) for path in paths)
            if is_look_at_thread and look.body.exists and marked_before(look, before):
                return _Former(look.body, is_at_rest(exchanges, thread_id, look, before))
        return None


@dataclass(frozen=True, slots=True)
class _Former:
    """A file as seen before its move; `final` if no request can have changed it since."""

    file: FileSeen
    final: bool


@rule(
    "archive.file-moved",
    title="Archiving moves the rollout file into another folder",
    level=Level.MUST,
    needs=("archive", "storage"),
)
class FileMoved(_Moves):
    """Judges that the file of a thread has moved, whenever a scenario looks at it after archiving.

    Only for a thread whose file was seen before: it must no longer be at its old path, and a newly
    reported path must be in another folder. The bytes should be the same, in the file at the
    reported path, or in some file of the home if none is reported: SHOULD, since a server may add
    to it, and may have its archive elsewhere. Left open: threads with any but reading requests
    since.
    """

    @on_mark(FileSeen)
    def on_file_seen(self, mark: Mark[FileSeen]) -> Outcomes:
        for thread_id, state, exchanges in self.threads_seen(mark, StoragePlace.ARCHIVED):
            former = self.last_seen(mark, exchanges, thread_id, state.frames[0])
            if former is not None:
                yield from _judge_move(thread_id, state.frames, former, mark.body)


def _judge_move(
    thread_id: str, frames: tuple[Frame, ...], before: _Former, now: FileSeen
) -> Iterator[Outcome]:
    subject, former = f"thread {thread_id}", before.file
    places = (member(frames[-1], "threadId").place,)
    if now.path == former.path and now.exists:
        expected = f"no file at {literal(now.path)}, since {subject} was archived"
        yield Violation(subject, frames, expected, "there is one", places=places)
    elif now.path == former.path:
        if any(_folder(path) != _folder(former.path) for path in now.elsewhere):
            yield Witness(subject, frames)
        elif before.final:
            expected = "a file in another folder with the bytes of the one that was archived"
            actual = f"no file of the home has the {former.size} bytes of {literal(former.path)}"
            yield Violation(subject, frames, expected, actual, Level.SHOULD, places=places)
    elif now.exists and _folder(now.path) == _folder(former.path):
        expected = f"another folder than that of {literal(former.path)}"
        yield Violation(subject, frames, expected, literal(now.path), places=places)
    elif now.exists:
        yield _compare_bytes(subject, frames, before, now, places)


@rule(
    "unarchive.file-back",
    title="Taking a thread out of the archive moves its rollout file back",
    level=Level.MUST,
    needs=("archive", "storage"),
)
class FileBack(_Moves):
    """Judges that the file of a restored thread is back, whenever a scenario looks at it.

    Only for a thread whose file was seen before, in use or archived. A file must be at the path in
    the answer to thread/unarchive, and none at its place in the archive. The bytes should be those
    that were seen last: SHOULD, since a server may add to the file.
    """

    @on_mark(FileSeen)
    def on_file_seen(self, mark: Mark[FileSeen]) -> Outcomes:
        for thread_id, state, exchanges in self.threads_seen(mark, StoragePlace.RESTORED):
            request, answer = state.frames[:2]
            former = self.last_seen(mark, exchanges, thread_id, request)
            if former is None:
                continue
            subject, now = f"thread {thread_id}", mark.body
            places = (member(answer, "thread", "path").place,)
            if _is_at(path_in(answer), mark):
                if now.exists:
                    yield _compare_bytes(subject, state.frames, former, now, places)
                else:
                    expected = f"a file at {literal(now.path)}, the path of the restored thread"
                    yield Violation(subject, state.frames, expected, "there is none", places=places)
            elif now.exists and self._was_archived_at(mark, exchanges, thread_id, request):
                expected = f"no file at {literal(now.path)}, since {subject} left the archive"
                yield Violation(subject, state.frames, expected, "there is one", places=places)

    def _was_archived_at(
        self, mark: Mark[FileSeen], exchanges: Exchanges, thread_id: str, restoring: Frame
    ) -> bool:
        """Return whether a look was at a path reported while the thread was archived."""
        requests = exchanges.requests("thread/archive", before=restoring)
        archived = [request for request in requests if thread_of_request(request) == thread_id]
        return any(
            reported.thread_id == thread_id
            and _is_at(reported.path, mark)
            and reported.request is not None
            and bool(archived)
            and came_before(archived[-1], reported.request)
            and came_before(reported.message, restoring)
            for reported in reported_paths(exchanges)
        )


def _compare_bytes(
    subject: str,
    frames: tuple[Frame, ...],
    before: _Former,
    now: FileSeen,
    places: tuple[Place, ...],
) -> Outcome:
    former = before.file
    if not before.final or now.sha256 == former.sha256:
        return Witness(subject, frames)
    expected = f"the {former.size} bytes of {literal(former.path)} at {literal(now.path)}"
    return Violation(
        subject, frames, expected, f"{now.size} other bytes", Level.SHOULD, places=places
    )


def _last_reported(exchanges: Exchanges) -> list[ReportedPath]:
    """Return the last path of each thread, if it was requested after the thread last moved."""
    last = {path.thread_id: path for path in reported_paths(exchanges)}
    paths: list[ReportedPath] = []
    for reported in last.values():
        moves = [
            request
            for request in exchanges.requests("thread/archive", "thread/unarchive")
            if thread_of_request(request) in ("", reported.thread_id)
            and request is not reported.request
        ]
        answers = [exchanges.answer_of(request) for request in moves]
        reference = reported.request or reported.message
        if all(answer is not None and came_before(answer, reference) for answer in answers):
            paths.append(reported)
    return paths


def _ended_turn(exchanges: Exchanges, thread_id: str) -> Frame | None:
    """Return the last turn/completed of a thread, None if there is none."""
    ends = [
        frame
        for frame in exchanges.frames
        if frame.kind is Kind.NOTIFICATION
        and frame.method == "turn/completed"
        and dig(frame.params, "threadId") == thread_id
    ]
    return ends[-1] if ends else None


def _path_member(reported: ReportedPath) -> Member:
    """Return the member of the reporting message that has the path."""
    if (
        isinstance(dig(reported.message.result, "thread"), dict)
        or reported.message.kind is Kind.NOTIFICATION
    ):
        return member(reported.message, "thread", "path")
    listed_ids = [
        text(obj(thread).get("id")) for thread in arr(dig(reported.message.result, "data"))
    ]
    return member(reported.message, "data", listed_ids.index(reported.thread_id), "path")


def _is_at(path: str, mark: Mark[FileSeen]) -> bool:
    """Return whether a look was at a path; a relative one is taken as below the home."""
    if not path:
        return False
    return mark.body.path == path or (
        not path.startswith("/") and mark.body.path.endswith(f"/{path}")
    )


def _folder(path: str) -> str:
    return posixpath.dirname(posixpath.normpath(path))
