"""Rules on the rollout file of a thread: where it lies, and how archiving moves it.

Nothing is judged where no look ever found a file or the folder in which it should lie: the server
may run on another machine.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harness.judge.base import Monitor, Outcome, Outcomes, Violation, Witness, on_mark, rule
from harness.judge.rules.shared.stored_threads import (
    Kept,
    Storage,
    ToldPath,
    at_rest,
    exchanges_at,
    marks_until,
    path_in,
    storage_of,
    told_paths,
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
    """Judges looks at the path that was told last of a thread, once it has a turn that ended.

    A file must be there. When a server writes it the text does not say: MUST where a thread/read
    had shown that turn among the turns, which are those of the rollout history, or the server was
    started again; else SHOULD. Left open: threads without a turn of which the end was told, paths
    told before the thread was archived or taken out of the archive, or while that was asked for.
    """

    @on_mark(FileSeen)
    def on_file_seen(self, mark: Mark[FileSeen]) -> Outcomes:
        exchanges = exchanges_at(self.trace, mark)
        for told in _last_told(exchanges):
            if not _is_at(told.path, mark) or storage_of(exchanges, told.thread_id) is None:
                continue
            ended = _ended_turn(exchanges, told.thread_id)
            if ended is None:
                continue
            subject, frames = f"thread {told.thread_id}", (told.told,)
            if mark.body.exists:
                yield Witness(subject, frames)
            elif mark.body.folder or any(
                one.body.exists for one in marks_until(self.trace, mark, FileSeen)
            ):
                level = None if self._stored(exchanges, mark, told, ended) else Level.SHOULD
                where, actual = _path_member(told), "no file is there"
                expected = f"{where.name}: the path of a file, since a turn of {subject} has ended"
                found = f"{where}; {actual}"
                yield Violation(subject, frames, expected, found, level, places=(where.place,))

    def _stored(
        self, exchanges: Exchanges, mark: Mark[FileSeen], told: ToldPath, ended: Frame
    ) -> bool:
        """Return whether the turn that ended was certainly in the rollout history before a look."""
        turn_id = dig(ended.params, "turn", "id")
        for request in exchanges.sent(READ):
            result = getattr(exchanges.answer_of(request), "result", None)
            mine = thread_of_request(request) == told.thread_id
            turns = arr(dig(result, "thread", "turns")) if mine else []
            if any(obj(turn).get("id") == turn_id for turn in turns):
                return True
        steps = marks_until(self.trace, mark, StepBegins)
        return any(s.body.name == "restart" and not marked_before(s, ended) for s in steps)


class _Moves(Monitor):
    """Judges looks at the files of threads that were archived or restored."""

    def looks(self, mark: Mark[FileSeen], kept: Kept) -> list[tuple[str, Storage, Exchanges]]:
        """The threads that a look may be about, which are kept so."""
        exchanges = exchanges_at(self.trace, mark)
        threads = {t.thread_id for t in told_paths(exchanges) if _is_at(t.path, mark)}
        found: list[tuple[str, Storage, Exchanges]] = []
        for thread_id in sorted(threads):
            state = storage_of(exchanges, thread_id)
            if state is not None and state.kept is kept:
                found.append((thread_id, state, exchanges))
        return found

    def last_seen(
        self, mark: Mark[FileSeen], exchanges: Exchanges, thread_id: str, before: Frame
    ) -> "_Former | None":
        """The file of a thread as it was last seen before a request was sent, None for never."""
        paths = [told.path for told in told_paths(exchanges) if told.thread_id == thread_id]
        for look in reversed(marks_until(self.trace, mark, FileSeen)):
            mine = any(_is_at(path, look) for path in paths)
            if mine and look.body.exists and marked_before(look, before):
                return _Former(look.body, at_rest(exchanges, thread_id, look, before))
        return None


@dataclass(frozen=True, slots=True)
class _Former:
    """A file as it was seen before it was moved; `final`: nothing was asked for that changes it."""

    file: FileSeen
    final: bool


@rule(
    "archive.file-moved",
    title="Archiving moves the rollout file into another folder",
    level=Level.MUST,
    needs=("archive", "storage"),
)
class FileMoved(_Moves):
    """Judges looks at the file of a thread after thread/archived was told of it.

    Of a thread whose file was seen before it was archived: the file must no longer be where it was,
    and a path that is told since must lie in another folder. The bytes should be the same, in the
    file of the path that is told, or in some file of the home where none is told: SHOULD, since a
    server may add to it, and may keep its archive elsewhere. Left open: threads that were asked for
    anything but a look since.
    """

    @on_mark(FileSeen)
    def on_file_seen(self, mark: Mark[FileSeen]) -> Outcomes:
        for thread_id, state, exchanges in self.looks(mark, Kept.ARCHIVED):
            former = self.last_seen(mark, exchanges, thread_id, state.frames[0])
            if former is not None:
                yield from _moved(thread_id, state.frames, former, mark.body)


def _moved(
    thread_id: str, frames: tuple[Frame, ...], before: _Former, now: FileSeen
) -> Iterator[Outcome]:
    subject, former = f"thread {thread_id}", before.file
    about = (member(frames[-1], "threadId").place,)
    if now.path == former.path and now.exists:
        expected = f"no file at {literal(now.path)}, since {subject} was archived"
        yield Violation(subject, frames, expected, "there is one", places=about)
    elif now.path == former.path:
        if any(_folder(one) != _folder(former.path) for one in now.elsewhere):
            yield Witness(subject, frames)
        elif before.final:
            expected = "a file in another folder with the bytes of the one that was archived"
            actual = f"no file of the home has the {former.size} bytes of {literal(former.path)}"
            yield Violation(subject, frames, expected, actual, Level.SHOULD, places=about)
    elif now.exists and _folder(now.path) == _folder(former.path):
        expected = f"another folder than that of {literal(former.path)}"
        yield Violation(subject, frames, expected, literal(now.path), places=about)
    elif now.exists:
        yield _same_bytes(subject, frames, before, now, about)


@rule(
    "unarchive.file-back",
    title="Taking a thread out of the archive moves its rollout file back",
    level=Level.MUST,
    needs=("archive", "storage"),
)
class FileBack(_Moves):
    """Judges looks at the file of a thread after thread/unarchived was told of it.

    Of a thread whose file was seen before, in use or in the archive. A file must be at the path
    that the answer to thread/unarchive tells, and none where it lay in the archive. The bytes
    should be those that were seen last: SHOULD, since a server may add to the file.
    """

    @on_mark(FileSeen)
    def on_file_seen(self, mark: Mark[FileSeen]) -> Outcomes:
        for thread_id, state, exchanges in self.looks(mark, Kept.RESTORED):
            request, answer = state.frames[:2]
            former = self.last_seen(mark, exchanges, thread_id, request)
            if former is None:
                continue
            subject, now = f"thread {thread_id}", mark.body
            about = (member(answer, "thread", "path").place,)
            if _is_at(path_in(answer), mark):
                if now.exists:
                    yield _same_bytes(subject, state.frames, former, now, about)
                else:
                    expected = f"a file at {literal(now.path)}, the path of the restored thread"
                    yield Violation(subject, state.frames, expected, "there is none", places=about)
            elif now.exists and self._was_archived_at(mark, exchanges, thread_id, request):
                expected = f"no file at {literal(now.path)}, since {subject} left the archive"
                yield Violation(subject, state.frames, expected, "there is one", places=about)

    def _was_archived_at(
        self, mark: Mark[FileSeen], exchanges: Exchanges, thread_id: str, restoring: Frame
    ) -> bool:
        """Return whether a path was told of a thread while that was in the archive."""
        asked = exchanges.sent("thread/archive", before=restoring)
        archived = [one for one in asked if thread_of_request(one) == thread_id]
        return any(
            told.thread_id == thread_id
            and _is_at(told.path, mark)
            and told.asked is not None
            and bool(archived)
            and came_before(archived[-1], told.asked)
            and came_before(told.told, restoring)
            for told in told_paths(exchanges)
        )


def _same_bytes(
    subject: str,
    frames: tuple[Frame, ...],
    before: _Former,
    now: FileSeen,
    about: tuple[Place, ...],
) -> Outcome:
    former = before.file
    if not before.final or now.sha256 == former.sha256:
        return Witness(subject, frames)
    expected = f"the {former.size} bytes of {literal(former.path)} at {literal(now.path)}"
    return Violation(
        subject, frames, expected, f"{now.size} other bytes", Level.SHOULD, places=about
    )


def _last_told(exchanges: Exchanges) -> list[ToldPath]:
    """The path of each thread that was told last, if it was asked for where the thread is now."""
    last = {told.thread_id: told for told in told_paths(exchanges)}
    found: list[ToldPath] = []
    for told in last.values():
        moves = [
            one
            for one in exchanges.sent("thread/archive", "thread/unarchive")
            if thread_of_request(one) in ("", told.thread_id) and one is not told.asked
        ]
        answers = [exchanges.answer_of(one) for one in moves]
        asked = told.asked or told.told
        if all(answer is not None and came_before(answer, asked) for answer in answers):
            found.append(told)
    return found


def _ended_turn(exchanges: Exchanges, thread_id: str) -> Frame | None:
    """The last turn/completed of a thread, None for none."""
    ends = [
        frame
        for frame in exchanges.frames
        if frame.kind is Kind.NOTIFICATION
        and frame.method == "turn/completed"
        and dig(frame.params, "threadId") == thread_id
    ]
    return ends[-1] if ends else None


def _path_member(told: ToldPath) -> Member:
    """Return the member of a message that has a path."""
    if isinstance(dig(told.told.result, "thread"), dict) or told.told.kind is Kind.NOTIFICATION:
        return member(told.told, "thread", "path")
    listed = [text(obj(one).get("id")) for one in arr(dig(told.told.result, "data"))]
    return member(told.told, "data", listed.index(told.thread_id), "path")


def _is_at(path: str, mark: Mark[FileSeen]) -> bool:
    """Return whether a look was at a path.

    One that is not absolute is taken to be below the home.
    """
    if not path:
        return False
    return mark.body.path == path or (
        not path.startswith("/") and mark.body.path.endswith(f"/{path}")
    )


def _folder(path: str) -> str:
    return posixpath.dirname(posixpath.normpath(path))
