"""Rules on the diff of a turn: it follows each file change and includes all of them."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from harness.judge.base import Monitor, Outcome, Outcomes, Violation, Witness, on, rule
from harness.judge.rules.shared.unified_diffs import OldFile, old_files
from harness.judge.rules.shared.view_queries import began_here, connection_suffix, item_in
from harness.judge.rules.shared.violations import absent, member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.item_types import types_with
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame
from harness.trace.order import came_before, came_between
from harness.trace.views import ItemView, TurnView

DIFF = "turn/diff/updated"
# Item types that can change or remove a file without a fileChange item.
_WORKING = frozenset(types_with("runs-elsewhere"))
# A command that starts a background process.
_ASIDE = re.compile(r"(?<![&>])&(?![&>0-9])")
# The beginnings of header and hunk lines of a unified diff.
_UNIFIED = re.compile(
    r"^(?:@@ |--- |\+\+\+ |diff |index |Index: |Binary files |GIT binary |(?:old|new|deleted) |"
    r"(?:dis)?similarity |rename |copy )",
    re.MULTILINE,
)
# The header lines that name a file.
_HEADER = re.compile(r"^(?:--- |\+\+\+ |diff ).*$", re.MULTILINE)
# The lines of a file change that may name another path of the same file.
_MOVE = re.compile(r"^(?:--- |\+\+\+ |diff |rename |copy |\*\*\* |Moved to:).*$", re.MULTILINE)
# Names that a diff does not quote or escape.
_PLAIN = re.compile(r"[A-Za-z0-9._-]+")


class _Changes(Monitor):
    """Base of rules on the completed file changes of each turn."""

    def begin(self) -> None:
        self.completed_changes: dict[str, list[Frame]] = {}

    @on("item/completed")
    def on_change_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type != "fileChange" or len(item.completions) > 1:
            return None
        if item_in(frame).get("status") == "completed" and began_here(self.conversation, item.turn):
            self.completed_changes.setdefault(item.turn.key, []).append(frame)
        return None

    def subject(self, frame: Frame) -> str:
        """Return the name of a completed item."""
        item = self.conversation.item_of(frame)
        return item.subject if item is not None else "item"


@dataclass(slots=True)
class _TurnChanges:
    """File changes of a turn: groups that wait for a diff, and changes that share one.

    A group is open until a change begins after another of its changes completed.
    """

    waiting_groups: list[list[Frame]] = field(default_factory=list[list[Frame]])
    shared_diffs: list[tuple[Frame, Frame]] = field(default_factory=list[tuple[Frame, Frame]])
    is_group_open: bool = False


@rule(
    "turn.diff-after-change",
    title="The diff of the turn follows every file change",
    level=Level.MUST,
    needs=("file-change",),
)
class DiffAfterChange(_Changes):
    """Judges that turn/diff/updated comes between a completed fileChange and its turn's end.

    One diff may follow several overlapping changes; consecutive ones should have a diff each, since
    it is emitted after every item: SHOULD, since the last diff follows them all. A diff after the
    end of the turn is SHOULD too: that it belongs to the turn follows from streaming alone. Left
    open: changes that were declined or failed, and turns that did not complete.
    """

    def begin(self) -> None:
        super().begin()
        self._turns: dict[str, _TurnChanges] = {}
        self._late_changes: dict[str, tuple[list[Frame], Frame]] = {}

    @on("item/started")
    def on_item_started(self, frame: Frame) -> Outcomes:
        changes = self._turns.get(self.conversation.key_of(frame))
        if changes is not None and item_in(frame).get("type") == "fileChange":
            changes.is_group_open = False
        return None

    @on("item/completed")
    def on_change_completed(self, frame: Frame) -> Outcomes:
        super().on_change_completed(frame)
        for key in list(self.completed_changes):
            changes = self._turns.setdefault(key, _TurnChanges())
            if not changes.is_group_open or not changes.waiting_groups:
                changes.waiting_groups.append([])
            changes.waiting_groups[-1] += self.completed_changes.pop(key)
            changes.is_group_open = True
        return None

    @on(DIFF)
    def on_diff(self, frame: Frame) -> Outcomes:
        turn = self.conversation.key_of(frame)
        late, end = self._late_changes.pop(turn, ([], frame))
        yield from (self._violation(x, end, "came after the end", frame) for x in late)
        changes = self._turns.get(turn)
        if changes is None:
            return
        if not changes.waiting_groups and changes.shared_diffs:
            # As many diffs as changes: the first one was just late.
            change, _ = changes.shared_diffs.pop(0)
            yield Witness(self.subject(change), (change, frame))
        for group in changes.waiting_groups[:-1]:
            changes.shared_diffs.append((group[-1], frame))
        for change in changes.waiting_groups[-1] if changes.waiting_groups else ():
            yield Witness(self.subject(change), (change, frame))
        changes.waiting_groups.clear()

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        changes = self._turns.pop(turn.key, None) if turn is not None else None
        if turn is None or changes is None or turn.status != "completed":
            return
        if not began_here(self.conversation, turn):
            return
        if changes.waiting_groups:
            self._late_changes[turn.key] = (
                [late_change for group in changes.waiting_groups for late_change in group],
                frame,
            )
        for change, shared in changes.shared_diffs:
            subject = self.subject(change)
            expected = (
                f"{DIFF} after the item/completed of {subject}, and one after the next change"
            )
            status, actual = member(change, "item", "status"), "one came, after both"
            frames = (change, shared, frame)
            yield absent(subject, frames, expected, actual, status, level=Level.SHOULD)

    def finish(self) -> Outcomes:
        for changes, end in self._late_changes.values():
            yield from (self._violation(change, end, "none came") for change in changes)

    def _violation(self, change: Frame, end: Frame, actual: str, *late: Frame) -> Violation:
        subject, frames = self.subject(change), (change, end, *late)
        expected = f"{DIFF} between the item/completed of {subject} and the end of its turn"
        status, level = member(change, "item", "status"), Level.SHOULD if late else None
        return absent(subject, frames, expected, actual, status, level=level)


@rule(
    "turn.diff-whole",
    title="The diff is that of the whole turn",
    level=Level.MUST,
    needs=("file-change",),
)
class DiffWhole(_Changes):
    """Judges that the last diff of a turn names each file that only one of its items changed.

    A file is found by its name alone: the form of paths in a diff is not shown. A text without any
    line of a unified diff, no hunk and no header, is not such a diff. All diffs of a turn begin at
    the same state: a line before the changes that differs in two of them is a finding, SHOULD if a
    command or a tool ran. Left open: files that several changes of the turn touch or mention, which
    may be unchanged; those that a command or a tool may have touched after the change; changes with
    an empty diff, names that a diff may quote, diffs before the last change, and turns that did not
    complete.
    """

    def begin(self) -> None:
        super().begin()
        self._diffs: dict[str, list[Frame]] = {}
        self._running: set[ItemView] = set()
        self._work_messages: list[Frame] = []

    @on(DIFF)
    def on_diff(self, frame: Frame) -> Outcomes:
        self._diffs.setdefault(self.conversation.key_of(frame), []).append(frame)
        return None

    @on("item/started")
    def on_item_started(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is not None and item.type in _WORKING:
            self._running.add(item)
            self._work_messages.append(frame)
        return None

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is not None and item.type in _WORKING:
            if not _ASIDE.search(text(item_in(frame).get("command"))):
                self._running.discard(item)
            self._work_messages.append(frame)
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        changes = self.completed_changes.pop(turn.key, []) if turn is not None else []
        diffs = self._diffs.pop(turn.key, []) if turn is not None else []
        if turn is None or turn.status != "completed" or not diffs or not changes:
            return None
        if not began_here(self.conversation, turn):
            return None
        last, partial = diffs[-1], self._find_other_base(turn.subject, diffs)
        if partial is not None:
            return [partial]
        diff, paths = obj(last.params).get("diff"), self._certain_paths(changes, last)
        if isinstance(diff, str) and diff.strip() and not _UNIFIED.search(diff):
            field, expected = member(last, "diff"), "a unified diff, with its headers or hunks"
            return [wrong(turn.subject, (*changes, last), field, expected)]
        if came_before(last, changes[-1]) or not isinstance(diff, str) or not paths:
            return None
        missing = [path for path in paths if PurePosixPath(path).name not in diff]
        if not missing:
            return [Witness(turn.subject, (*changes, last))]
        frames = (*changes, last)
        expected = f"names {', '.join(missing)}, which an item of the turn changed"
        return [wrong(turn.subject, frames, member(last, "diff"), expected)]

    def _find_other_base(self, subject: str, diffs: list[Frame]) -> Violation | None:
        """Return the violation if two diffs show one file differently before the turn."""
        known: dict[str, tuple[OldFile, Frame]] = {}
        for diff in diffs:
            for name, file in old_files(text(obj(diff.params).get("diff"))).items():
                earlier, frame = known.setdefault(name, (file, diff))
                if earlier.disagrees_with(file):
                    expected = f"{name} as it was before the turn, as in an earlier diff of it"
                    field, also = member(diff, "diff"), (member(frame, "diff"),)
                    level = Level.SHOULD if self._work_messages else None
                    return wrong(subject, (frame, diff), field, expected, level=level, also=also)
        return None

    def _certain_paths(self, changes: list[Frame], last: Frame) -> list[str]:
        """Return the paths that were changed and cannot have been restored since; [] if unsure."""
        if self._running:
            return []
        quiet = [
            change
            for change in changes
            if not any(came_between(change, worked, last) for worked in self._work_messages)
        ]
        unique_paths = _changed_once(changes)
        return [path for path in _paths(quiet) if path in unique_paths]


def _paths(changes: list[Frame]) -> list[str]:
    parts = [obj(part) for frame in changes for part in arr(item_in(frame).get("changes"))]
    return list(dict.fromkeys(text(part.get("path")) for part in parts))


def _changed_once(changes: list[Frame]) -> list[str]:
    """Return the paths that exactly one change is about, if their names are plain."""
    parts = [obj(part) for frame in changes for part in arr(item_in(frame).get("changes"))]
    contents = {
        index: json.dumps([part.get("kind"), part.get("diff")]) for index, part in enumerate(parts)
    }
    paths: list[str] = []
    for number, part in enumerate(parts):
        path = text(part.get("path"))
        name = PurePosixPath(path).name
        other_indexes = [other for other in range(len(parts)) if other != number]
        touched = any(
            text(parts[other].get("path")) == path or name in contents[other]
            for other in other_indexes
        )
        if _PLAIN.fullmatch(name) and not touched and part.get("diff") != "":
            paths.append(path)
    return paths


@rule(
    "turn.diff-own",
    title="The diff of a turn has no changes of an earlier turn",
    level=Level.MUST,
    needs=("file-change",),
)
class DiffOwn(_Changes):
    """Judges that the last diff of a turn names no file that only an earlier turn changed.

    The file was changed by a completed fileChange of an earlier turn, of this thread or another,
    and no fileChange of this turn names it. Found by its name in a header line of the unified diff.
    SHOULD if something else may have touched the file between the start of the turn and the diff: a
    command or a tool that ran then or may run in the background, another turn that was active then,
    or another client. Left open: names that a diff may quote.
    """

    def begin(self) -> None:
        super().begin()
        self._changed_before: dict[str, Frame] = {}
        self._named: dict[str, set[str]] = {}
        self._diffs: dict[str, tuple[Frame, bool]] = {}
        self._running: set[ItemView] = set()
        self._last_work: Frame | None = None

    @on(DIFF)
    def on_diff(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is not None:
            self._diffs[turn.key] = frame, self._is_alone(turn)
        return None

    @on("item/started", "item/completed")
    def on_item(self, frame: Frame) -> Outcomes:
        shown, item = item_in(frame), self.conversation.item_of(frame)
        if shown.get("type") == "fileChange":
            names = self._named.setdefault(self.conversation.key_of(frame), set())
            names |= _names_in(shown)
        if item is not None and item.type in _WORKING:
            self._last_work = frame
            if frame.method == "item/started" or _ASIDE.search(text(shown.get("command"))):
                self._running.add(item)
            else:
                self._running.discard(item)
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        if turn is None or not began_here(self.conversation, turn):
            return
        last, named = self._diffs.pop(turn.key, None), self._named.pop(turn.key, set[str]())
        begun = _begin_of(turn)
        others = {
            name: change
            for name, change in self._changed_before.items()
            if name not in named and begun is not None and came_before(change, begun)
        }
        if last is not None and others:
            yield self._judge(turn.subject, *last, others)
        for change in self.completed_changes.pop(turn.key, []):
            names = [PurePosixPath(path).name for path in _paths([change])]
            self._changed_before.update({name: change for name in names if _PLAIN.fullmatch(name)})

    def _is_alone(self, turn: TurnView) -> bool:
        """Return whether nothing else has worked since a turn began."""
        begun, work = _begin_of(turn), self._last_work
        if begun is None or self._running or (work is not None and came_before(begun, work)):
            return False
        return all(
            other is turn or any(came_before(end, begun) for end in other.completions)
            for other in self.conversation.turns.values()
        )

    def _judge(
        self, subject: str, diff: Frame, is_alone: bool, others: dict[str, Frame]
    ) -> Outcome:
        headers = "\n".join(_HEADER.findall(text(obj(diff.params).get("diff"))))
        for name, change in others.items():
            if re.search(rf"(?:/|\s){re.escape(name)}(?:\s|$)", headers):
                expected, field = (
                    f"no {name}, which only an earlier turn changed",
                    member(diff, "diff"),
                )
                certain = is_alone and not connection_suffix(self.trace, diff)
                level = None if certain else Level.SHOULD
                return wrong(subject, (change, diff), field, expected, level=level)
        return Witness(subject, (*list(others.values())[-1:], diff))


def _names_in(item: dict[str, Any]) -> set[str]:
    """Return the file names in a fileChange, also those that a file is moved to."""
    names: set[str] = set()
    for part in map(obj, arr(item.get("changes"))):
        moves = _MOVE.findall(text(part.get("diff")))
        also = " ".join([json.dumps(part.get("kind")), *moves])
        names |= {PurePosixPath(text(part.get("path"))).name, *_PLAIN.findall(also)}
    return names


def _begin_of(turn: TurnView) -> Frame | None:
    """Return the first message of a turn, None if there is none."""
    return next((frame for frame in (turn.request, *turn.starts) if frame is not None), None)
