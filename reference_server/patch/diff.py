"""What a plan changes, and what a turn has changed, as diffs.

Here lives the wording for clients: the changes of a fileChange item and the diff of the whole turn.
Source: session-protocol "ThreadItem" (fileChange: path, kind, diff; the form of `kind` and `diff`
is not shown: it is the real servers') and "Events" (turn/diff/updated: the unified diff of the
turn). Hunks themselves are `unified`'s.
"""

import hashlib
import os
from dataclasses import dataclass, replace

from harness.wire.item import AddKind, DeleteKind, FileUpdateChange, UpdateKind
from reference_server.patch.effort import Effort
from reference_server.patch.files import Forbids, read_in_place
from reference_server.patch.match import is_text
from reference_server.patch.plan import Change, Plan
from reference_server.patch.unified import PAIRS_OF_ALL, TooMuchToShow, unified_hunks

MOST_SHOWN = 2**20
"""Bytes of one file that are shown as they are."""
MOST_KEPT = 16 * 2**20
"""Bytes of all the old contents that a turn's diff keeps."""
MOST_TOLD = 4 * 2**20
"""Characters of the diff of a turn, but for the few lines of each file beyond."""
_ABSENT = "0" * 40


def file_changes(plan: Plan) -> list[FileUpdateChange]:
    """The changes of the item, by path.

    `diff` is the whole content of an added or a deleted file, the hunks of an updated one without
    file names, then `Moved to: path` if it moves. Bytes that are no UTF-8 are shown as U+FFFD. Of
    what is too long the beginning is shown, and a line says how much is not.
    """
    effort = Effort(PAIRS_OF_ALL)
    return [_file_change(change, effort) for change in plan.changes]


def _file_change(change: Change, effort: Effort) -> FileUpdateChange:
    match change.kind:
        case "add":
            return FileUpdateChange(path=change.path, kind=AddKind(), diff=_content(change.after))
        case "delete":
            diff = _content(change.before)
            return FileUpdateChange(path=change.path, kind=DeleteKind(), diff=diff)
        case "update":
            moved = f"\n\nMoved to: {change.moved_to}" if change.moved_to else ""
            return FileUpdateChange(
                path=change.path,
                kind=UpdateKind(move_path=change.moved_to),
                diff=_hunks(change.before, change.after, effort) + moved,
            )


def _content(content: bytes | None) -> str:
    """A whole file, or its beginning."""
    content = content or b""
    rest = len(content) - MOST_SHOWN
    if rest <= 0:
        return _shown(content)
    # Not with half a character at its end.
    beginning = content[:MOST_SHOWN].decode(errors="ignore")
    return f"{beginning}\n[... {rest} bytes more are not shown ...]\n"


def _hunks(before: bytes | None, after: bytes | None, effort: Effort) -> str:
    if before == after:
        return ""
    try:
        return unified_hunks(_shown(before), _shown(after), effort)
    except TooMuchToShow:
        sizes = f"{len(before or b'')} bytes before, {len(after or b'')} after"
        return f"[... too much differs to be shown: {sizes} ...]\n"


def _shown(content: bytes | None) -> str:
    return (content or b"").decode(errors="replace")


@dataclass(frozen=True, slots=True)
class _State:
    """A file at one time. `blob` is git's name of its content, None where there is no file.

    `content` is None where none is kept: it cannot be read, or there is too much of it.
    """

    blob: str | None
    content: bytes | None = None
    executable: bool = False
    unreadable: bool = False

    @property
    def exists(self) -> bool:
        return self.blob is not None or self.unreadable

    @property
    def mode(self) -> str:
        return "100755" if self.executable else "100644"


class TurnDiff:
    """The diff from how files were before a turn's first patch of them to how they are on disk.

    It is bounded: files whose old contents would be too much to keep differ as binary files do,
    and so do those whose diffs would make the whole too long.
    """

    def __init__(self, cwd: str | os.PathLike[str]) -> None:
        self._cwd = os.path.realpath(cwd)
        self._baseline: dict[str, _State] = {}
        self._pieces: dict[str, tuple[_State, str]] = {}
        self._room = MOST_KEPT

    def note(self, plan: Plan) -> None:
        """Remember the files of a plan as it found them, those not noted before.

        Reads nothing, so it may be called before or after the plan is applied.
        """
        for write in plan.writes():
            if write.real not in self._baseline:
                self._baseline[write.real] = self._kept(write.before, write.mode or 0)

    def _kept(self, content: bytes | None, mode: int) -> _State:
        if content is None:
            return _State(None)
        kept = len(content) <= min(MOST_SHOWN, self._room)
        self._room -= len(content) if kept else 0
        return _State(_blob(content), content if kept else None, bool(mode & 0o100))

    def text(self, forbids: Forbids = lambda _real, _status: None) -> str:
        """Give the diff, as git writes it, by path; "" where every file is as it was. Blocks.

        Paths are relative to the folder of the turn where they are below it, else absolute. What
        a command of the turn did to the noted files is in it, too. A moved file is a deleted one
        and a new one. Never raises: what cannot be read, or must not be, differs as a binary file
        does; what only a link leads to is gone.
        """
        room, effort = MOST_TOLD, Effort(PAIRS_OF_ALL)
        pieces: list[str] = []
        for path in sorted(self._baseline):
            piece = self._piece(path, forbids, room, effort)
            room -= len(piece)
            pieces.append(piece)
        return "".join(pieces)

    def _piece(self, path: str, forbids: Forbids, room: int, effort: Effort) -> str:
        before, now = self._baseline[path], _on_disk(path, forbids)
        # The content of the other side may not be kept: the names of both are enough.
        if replace(before, content=None) == replace(now, content=None):
            return ""
        known = self._pieces.get(path)
        brief = replace(now, content=None)
        if known is None or known[0] != brief:
            known = (brief, _file_diff(self._named(path), before, now, effort))
            self._pieces[path] = known
        if len(known[1]) <= room:
            return known[1]
        return _file_diff(self._named(path), replace(before, content=None), now, effort)

    def _named(self, path: str) -> str:
        below = os.path.join(self._cwd, "")
        return path.removeprefix(below)


def _on_disk(path: str, forbids: Forbids) -> _State:
    try:
        found = read_in_place(path, forbids)
    except OSError:
        # A folder or a link that has taken its place is not the file.
        gone = os.path.islink(path) or os.path.isdir(path)
        return _State(None, unreadable=not gone)
    if found is None:
        return _State(None)
    kept = found.content if len(found.content) <= MOST_SHOWN else None
    return _State(_blob(found.content), kept, bool(found.mode & 0o100))


def _file_diff(name: str, before: _State, now: _State, effort: Effort) -> str:
    lines = [f"diff --git {_quoted(f'a/{name}')} {_quoted(f'b/{name}')}"]
    same_mode = before.mode == now.mode
    if not before.exists:
        lines.append(f"new file mode {now.mode}")
    elif not now.exists:
        lines.append(f"deleted file mode {before.mode}")
    elif not same_mode and not now.unreadable:
        lines += [f"old mode {before.mode}", f"new mode {now.mode}"]
    old = _quoted(f"a/{name}") if before.exists else "/dev/null"
    new = _quoted(f"b/{name}") if now.exists else "/dev/null"
    if before.blob != now.blob or before.exists != now.exists:
        both = before.exists and now.exists
        mode = f" {now.mode}" if both and same_mode else ""
        lines.append(f"index {before.blob or _ABSENT}..{now.blob or _ABSENT}{mode}")
    hunks = _hunks_of(before, now, effort)
    if hunks is None:
        return "\n".join([*lines, f"Binary files {old} and {new} differ\n"])
    if hunks:
        lines += [f"--- {_ended(old)}", f"+++ {_ended(new)}"]
    return "\n".join([*lines, hunks])


def _hunks_of(before: _State, now: _State, effort: Effort) -> str | None:
    """The hunks; None where the contents are not shown."""
    if before.blob == now.blob and not now.unreadable:
        return ""
    for one in (before, now):
        if one.exists and (one.content is None or not is_text(one.content)):
            return None
    try:
        return unified_hunks(_shown(before.content), _shown(now.content), effort)
    except TooMuchToShow:
        return None


def _blob(content: bytes) -> str:
    """What git calls the content."""
    name = hashlib.sha1(b"blob %d\0" % len(content), usedforsecurity=False)
    name.update(content)
    return name.hexdigest()


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _quoted(path: str) -> str:
    """A path as git writes it: as it is, or in quotes where a character needs them."""
    if not any(char in _ESCAPES or char < " " or char == "\x7f" for char in path):
        return path
    escaped = (
        _ESCAPES.get(char) or (f"\\{ord(char):03o}" if char < " " or char == "\x7f" else char)
        for char in path
    )
    return f'"{"".join(escaped)}"'


def _ended(path: str) -> str:
    """A path that has a space is followed by a tab, so that a reader sees its end."""
    return f"{path}\t" if " " in path and not path.startswith('"') else path
