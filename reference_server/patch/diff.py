"""What a plan changes, and what a turn has changed, as diffs.

Here lives the wording for clients: the changes of a fileChange item and the diff of the whole turn.
Source: session-protocol "ThreadItem" (fileChange: path, kind, diff; the form of `kind` and `diff`
is not shown: it is the real servers') and "Events" (turn/diff/updated: the unified diff of the
turn). Hunks themselves are `unified`'s.
"""

import hashlib
import os
from dataclasses import dataclass

from harness.wire.item import AddKind, DeleteKind, FileUpdateChange, UpdateKind
from reference_server.patch.files import read_file
from reference_server.patch.match import is_text
from reference_server.patch.plan import Change, Plan
from reference_server.patch.unified import unified_hunks

_ABSENT = "0" * 40


def file_changes(plan: Plan) -> list[FileUpdateChange]:
    """The changes of the item, by path.

    `diff` is the whole content of an added or a deleted file, the hunks of an updated one without
    file names, then `Moved to: path` if it moves. Bytes that are no UTF-8 are shown as U+FFFD.
    """
    return [_file_change(change) for change in plan.changes]


def _file_change(change: Change) -> FileUpdateChange:
    before, after = _shown(change.before), _shown(change.after)
    match change.kind:
        case "add":
            return FileUpdateChange(path=change.path, kind=AddKind(), diff=after)
        case "delete":
            return FileUpdateChange(path=change.path, kind=DeleteKind(), diff=before)
        case "update":
            moved = f"\n\nMoved to: {change.moved_to}" if change.moved_to else ""
            return FileUpdateChange(
                path=change.path,
                kind=UpdateKind(move_path=change.moved_to),
                diff=unified_hunks(before, after) + moved,
            )


def _shown(content: bytes | None) -> str:
    return (content or b"").decode(errors="replace")


@dataclass(frozen=True, slots=True)
class _State:
    """A file at one time; `content` None: there is none, or nothing that a diff can show."""

    content: bytes | None
    executable: bool = False
    unreadable: bool = False

    @property
    def exists(self) -> bool:
        return self.content is not None or self.unreadable

    @property
    def mode(self) -> str:
        return "100755" if self.executable else "100644"


class TurnDiff:
    """The diff from how files were before a turn's first patch of them to how they are on disk."""

    def __init__(self, cwd: str | os.PathLike[str]) -> None:
        self._cwd = os.path.realpath(cwd)
        self._baseline: dict[str, _State] = {}
        self._pieces: dict[str, tuple[_State, str]] = {}

    def note(self, plan: Plan) -> None:
        """Remember the files of a plan as it found them, those not noted before.

        Reads nothing, so it may be called before or after the plan is applied.
        """
        for write in plan.writes():
            if write.real not in self._baseline:
                executable = write.before is not None and bool((write.mode or 0) & 0o100)
                self._baseline[write.real] = _State(write.before, executable)

    def text(self) -> str:
        """Give the diff, as git writes it, by path; "" where every file is as it was. Blocks.

        Paths are relative to the folder of the turn where they are below it, else absolute. What
        a command of the turn did to the noted files is in it, too. A moved file is a deleted one
        and a new one. Never raises: what cannot be read differs as a binary file does.
        """
        return "".join(self._piece(path) for path in sorted(self._baseline))

    def _piece(self, path: str) -> str:
        before, now = self._baseline[path], _on_disk(path)
        if before == now:
            return ""
        known = self._pieces.get(path)
        if known is None or known[0] != now:
            known = (now, _file_diff(self._named(path), before, now))
            self._pieces[path] = known
        return known[1]

    def _named(self, path: str) -> str:
        below = os.path.join(self._cwd, "")
        return path.removeprefix(below)


def _on_disk(path: str) -> _State:
    try:
        found = read_file(path)
    except OSError:
        # A folder or a link that has taken its place is not the file.
        gone = os.path.islink(path) or os.path.isdir(path)
        return _State(None, unreadable=not gone)
    return _State(found.content, bool(found.mode & 0o100)) if found else _State(None)


def _file_diff(name: str, before: _State, now: _State) -> str:
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
    if before.content != now.content or before.exists != now.exists:
        both = before.exists and now.exists
        mode = f" {now.mode}" if both and same_mode else ""
        lines.append(f"index {_blob(before)}..{_blob(now)}{mode}")
    if now.unreadable or not all(is_text(one.content or b"") for one in (before, now)):
        return "\n".join([*lines, f"Binary files {old} and {new} differ\n"])
    hunks = unified_hunks(_shown(before.content), _shown(now.content))
    if hunks:
        lines += [f"--- {_ended(old)}", f"+++ {_ended(new)}"]
    return "\n".join([*lines, hunks])


def _blob(state: _State) -> str:
    """What git calls the content."""
    if state.content is None:
        return _ABSENT
    head = b"blob %d\0" % len(state.content)
    return hashlib.sha1(head + state.content, usedforsecurity=False).hexdigest()


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
