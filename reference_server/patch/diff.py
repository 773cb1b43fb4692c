"""Diffs for clients: the changes of a fileChange item, and the diff of a whole turn.

Source: session-protocol "ThreadItem" (fileChange: path, kind, diff; the form of `kind` and `diff`
is not shown: it is the real servers') and "Events" (turn/diff/updated: the unified diff of the
turn). `unified` makes hunks.
"""

import hashlib
import os
from dataclasses import dataclass, replace

from harness.protocol.wire.item import AddKind, DeleteKind, FileUpdateChange, UpdateKind
from reference_server.patch.files import Forbids, read_in_place
from reference_server.patch.match import is_text
from reference_server.patch.plan import Change, Plan
from reference_server.patch.unified import PAIRS_OF_ALL, TooMuchToShow, unified_hunks
from reference_server.patch.work_budget import WorkBudget

MAX_SHOWN_BYTES = 2**20
"""Maximum bytes of one file that are shown."""
MAX_KEPT_BYTES = 16 * 2**20
"""Maximum bytes of old contents that are kept for the diff of a turn."""
MAX_DIFF_CHARACTERS = 4 * 2**20
"""Maximum characters of the diff of a turn; further files have only a few lines each."""
_ABSENT = "0" * 40


def file_changes(plan: Plan) -> list[FileUpdateChange]:
    """Return the changes for the item, sorted by path.

    `diff` is the whole content of an added or a deleted file; of an updated one the hunks, without
    file names, and `Moved to: path` if it moves. Bytes that are not UTF-8 become U+FFFD. Of a long
    content only the beginning is shown, of long hunks nothing; a line states the size left out.
    """
    budget = WorkBudget(PAIRS_OF_ALL)
    return [_file_change(change, budget) for change in plan.changes]


def _file_change(change: Change, budget: WorkBudget) -> FileUpdateChange:
    match change.kind:
        case "add":
            return FileUpdateChange(path=change.path, kind=AddKind(), diff=_content(change.after))
        case "delete":
            diff = _content(change.before)
            return FileUpdateChange(path=change.path, kind=DeleteKind(), diff=diff)
        case "update":
            move_line = f"\n\nMoved to: {change.moved_to}" if change.moved_to else ""
            return FileUpdateChange(
                path=change.path,
                kind=UpdateKind(move_path=change.moved_to),
                diff=_hunks(change.before, change.after, budget) + move_line,
            )


def _content(content: bytes | None) -> str:
    """Return a whole file, or its beginning."""
    content = content or b""
    rest = len(content) - MAX_SHOWN_BYTES
    if rest <= 0:
        return _decode(content)
    # "ignore" drops a character that the cut divides.
    beginning = content[:MAX_SHOWN_BYTES].decode(errors="ignore")
    return f"{beginning}\n[... {rest} bytes more are not shown ...]\n"


def _hunks(before: bytes | None, after: bytes | None, budget: WorkBudget) -> str:
    if before == after:
        return ""
    try:
        return unified_hunks(_decode(before), _decode(after), budget)
    except TooMuchToShow:
        sizes = f"{len(before or b'')} bytes before, {len(after or b'')} after"
        return f"[... too much differs to be shown: {sizes} ...]\n"


def _decode(content: bytes | None) -> str:
    return (content or b"").decode(errors="replace")


@dataclass(frozen=True, slots=True)
class _State:
    """State of a file. `blob` is git's hash of its content, None if it is missing or unreadable.

    `content` is None if it is unreadable or too large to keep.
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
    """Diff of a turn, from the files before the turn's first patch of them to those on disk.

    Its size is limited: files whose old contents are too large to keep, or whose diffs would make
    the whole too long, are shown like binary files.
    """

    def __init__(self, cwd: str | os.PathLike[str]) -> None:
        self._cwd = os.path.realpath(cwd)
        self._baseline: dict[str, _State] = {}
        self._pieces: dict[str, tuple[_State, str]] = {}
        self._room = MAX_KEPT_BYTES

    def note(self, plan: Plan) -> None:
        """Remember the contents before a plan of files that are not remembered yet.

        It reads no file, so it may be called before or after the plan is applied.
        """
        for write in plan.writes():
            if write.real not in self._baseline:
                self._baseline[write.real] = self._keep_state(write.before, write.mode or 0)

    def _keep_state(self, content: bytes | None, mode: int) -> _State:
        if content is None:
            return _State(None)
        is_kept = len(content) <= min(MAX_SHOWN_BYTES, self._room)
        self._room -= len(content) if is_kept else 0
        return _State(_blob(content), content if is_kept else None, bool(mode & 0o100))

    def text(self, forbids: Forbids = lambda _real, _status: None) -> str:
        """Return the diff in git's form, sorted by path; "" if every file is unchanged. Blocks.

        Paths below the turn's working directory are relative, others absolute. Changes of the
        remembered files by commands are included. A moved file is a deleted one and a new one.
        Never raises: a file that cannot or must not be read is shown like a binary one; a file that
        was replaced by a link counts as deleted.
        """
        room, budget = MAX_DIFF_CHARACTERS, WorkBudget(PAIRS_OF_ALL)
        pieces: list[str] = []
        for path in sorted(self._baseline):
            piece = self._piece(path, forbids, room, budget)
            room -= len(piece)
            pieces.append(piece)
        return "".join(pieces)

    def _piece(self, path: str, forbids: Forbids, room: int, budget: WorkBudget) -> str:
        before, now = self._baseline[path], _on_disk(path, forbids)
        # Compared by hash, since the old content may not be kept.
        if replace(before, content=None) == replace(now, content=None):
            return ""
        cached = self._pieces.get(path)
        brief = replace(now, content=None)
        if cached is None or cached[0] != brief:
            cached = (brief, _file_diff(self._relative_name(path), before, now, budget))
            self._pieces[path] = cached
        if len(cached[1]) <= room:
            return cached[1]
        return _file_diff(self._relative_name(path), replace(before, content=None), now, budget)

    def _relative_name(self, path: str) -> str:
        prefix = os.path.join(self._cwd, "")
        return path.removeprefix(prefix)


def _on_disk(path: str, forbids: Forbids) -> _State:
    try:
        file = read_in_place(path, forbids)
    except OSError:
        # A folder or a link that has taken its place is not the file.
        gone = os.path.islink(path) or os.path.isdir(path)
        return _State(None, unreadable=not gone)
    if file is None:
        return _State(None)
    content = file.content if len(file.content) <= MAX_SHOWN_BYTES else None
    return _State(_blob(file.content), content, bool(file.mode & 0o100))


def _file_diff(name: str, before: _State, now: _State, budget: WorkBudget) -> str:
    lines = [f"diff --git {_quote(f'a/{name}')} {_quote(f'b/{name}')}"]
    same_mode = before.mode == now.mode
    if not before.exists:
        lines.append(f"new file mode {now.mode}")
    elif not now.exists:
        lines.append(f"deleted file mode {before.mode}")
    elif not same_mode and not now.unreadable:
        lines += [f"old mode {before.mode}", f"new mode {now.mode}"]
    old = _quote(f"a/{name}") if before.exists else "/dev/null"
    new = _quote(f"b/{name}") if now.exists else "/dev/null"
    if before.blob != now.blob or before.exists != now.exists:
        both = before.exists and now.exists
        mode = f" {now.mode}" if both and same_mode else ""
        lines.append(f"index {before.blob or _ABSENT}..{now.blob or _ABSENT}{mode}")
    hunks = _hunks_of(before, now, budget)
    if hunks is None:
        return "\n".join([*lines, f"Binary files {old} and {new} differ\n"])
    if hunks:
        lines += [f"--- {_with_tab(old)}", f"+++ {_with_tab(new)}"]
    return "\n".join([*lines, hunks])


def _hunks_of(before: _State, now: _State, budget: WorkBudget) -> str | None:
    """Return the hunks; None if the contents are not shown."""
    if before.blob == now.blob and not now.unreadable:
        return ""
    for state in (before, now):
        if state.exists and (state.content is None or not is_text(state.content)):
            return None
    try:
        return unified_hunks(_decode(before.content), _decode(now.content), budget)
    except TooMuchToShow:
        return None


def _blob(content: bytes) -> str:
    """Return git's blob hash of a content."""
    name = hashlib.sha1(b"blob %d\0" % len(content), usedforsecurity=False)
    name.update(content)
    return name.hexdigest()


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _quote(path: str) -> str:
    """Return a path as git writes it, quoted if it has special characters."""
    if not any(char in _ESCAPES or char < " " or char == "\x7f" for char in path):
        return path
    escaped = (
        _ESCAPES.get(char) or (f"\\{ord(char):03o}" if char < " " or char == "\x7f" else char)
        for char in path
    )
    return f'"{"".join(escaped)}"'


def _with_tab(path: str) -> str:
    """Return a path, followed by a tab if it has a space, as git marks its end."""
    return f"{path}\t" if " " in path and not path.startswith('"') else path
