"""Rules on the diff of a turn: that it follows each file change and includes all of them."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from harness.judge.base import Monitor, Outcomes, Violation, Witness, on, rule
from harness.judge.rules.shared.view_queries import began_here, item_in
from harness.judge.rules.shared.violations import absent, member, wrong
from harness.judge.verdict import Level
from harness.protocol.spec.item_types import types_with
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Frame
from harness.trace.order import came_before, came_between
from harness.trace.views import ItemView

DIFF = "turn/diff/updated"
# The items by which a file can be changed or removed without a fileChange item.
_WORKING = frozenset(types_with("runs-elsewhere"))
# A command that leaves something running behind it.
_ASIDE = re.compile(r"(?<![&>])&(?![&>0-9])")
# A line that a unified diff begins a file, a hunk, or a change without one with.
_UNIFIED = re.compile(
    r"^(?:@@ |--- |\+\+\+ |diff |index |Index: |Binary files |GIT binary |(?:old|new|deleted) |"
    r"(?:dis)?similarity |rename |copy )",
    re.MULTILINE,
)
# Names that a diff writes as they are: others may be quoted or escaped.
_PLAIN = re.compile(r"[A-Za-z0-9._-]+")


class _Changes(Monitor):
    """Keeps, by turn, the completions of file changes that were made."""

    def begin(self) -> None:
        self.made: dict[str, list[Frame]] = {}

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is None or item.type != "fileChange" or len(item.completed) > 1:
            return None
        if item_in(frame).get("status") == "completed" and began_here(self.conversation, item.turn):
            self.made.setdefault(item.turn.key, []).append(frame)
        return None

    def subject(self, frame: Frame) -> str:
        """The item of a completion."""
        item = self.conversation.item_of(frame)
        return item.subject if item is not None else "item"


@dataclass(slots=True)
class _Told:
    """The file changes of a turn: those that wait for a diff, and those that share one.

    Changes are `together` where none began after another of them was completed.
    """

    waiting: list[list[Frame]] = field(default_factory=list[list[Frame]])
    sharing: list[tuple[Frame, Frame]] = field(default_factory=list[tuple[Frame, Frame]])
    together: bool = False


@rule(
    "turn.diff-after-change",
    title="The diff of the turn follows every file change",
    level=Level.MUST,
    needs=("file-change",),
)
class DiffAfterChange(_Changes):
    """Judges that turn/diff/updated comes between a fileChange that was made and its turn's end.

    One diff may follow several changes that were completed together; of changes that were made one
    after the other each should have its own, since it is told after every item: SHOULD, for the one
    that comes last follows them all. One that comes after the end of the turn is SHOULD too: that
    it belongs to the work follows from notifications being streamed while that runs. Left open:
    changes that were declined or failed, which left nothing to tell, and turns that did not end as
    completed.
    """

    def begin(self) -> None:
        super().begin()
        self._turns: dict[str, _Told] = {}
        self._missed: dict[str, tuple[list[Frame], Frame]] = {}

    @on("item/started")
    def on_item_started(self, frame: Frame) -> Outcomes:
        told = self._turns.get(self.conversation.key_of(frame))
        if told is not None and item_in(frame).get("type") == "fileChange":
            told.together = False
        return None

    @on("item/completed")
    def completed(self, frame: Frame) -> Outcomes:
        super().completed(frame)
        for key in list(self.made):
            told = self._turns.setdefault(key, _Told())
            if not told.together or not told.waiting:
                told.waiting.append([])
            told.waiting[-1] += self.made.pop(key)
            told.together = True
        return None

    @on(DIFF)
    def on_diff(self, frame: Frame) -> Outcomes:
        turn = self.conversation.key_of(frame)
        late, end = self._missed.pop(turn, ([], frame))
        yield from (self._violation(x, end, "came after the end", frame) for x in late)
        told = self._turns.get(turn)
        if told is None:
            return
        if not told.waiting and told.sharing:
            # As many diffs as changes: the first came late, as one that is computed aside does.
            change, _ = told.sharing.pop(0)
            yield Witness(self.subject(change), (change, frame))
        for group in told.waiting[:-1]:
            told.sharing.append((group[-1], frame))
        for change in told.waiting[-1] if told.waiting else ():
            yield Witness(self.subject(change), (change, frame))
        told.waiting.clear()

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        told = self._turns.pop(turn.key, None) if turn is not None else None
        if turn is None or told is None or turn.status != "completed":
            return
        if not began_here(self.conversation, turn):
            return
        if told.waiting:
            self._missed[turn.key] = ([one for group in told.waiting for one in group], frame)
        for change, shared in told.sharing:
            subject = self.subject(change)
            expected = (
                f"{DIFF} after the item/completed of {subject}, and one after the next change"
            )
            status, actual = member(change, "item", "status"), "one came, after both"
            frames = (change, shared, frame)
            yield absent(subject, frames, expected, actual, status, level=Level.SHOULD)

    def finish(self) -> Outcomes:
        for changes, end in self._missed.values():
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
    """Judges that the last diff of a turn names each file that one item of the turn changed.

    Only by its name: in which form paths stand in a diff is not shown. A text that has none of the
    lines of a unified diff, no hunk and no header, is no such diff. Left open: files that
    several changes of the turn touched or speak of, which may be as they were, those that a command
    or a tool may have touched after the change, changes whose own diff is empty, names that a diff
    may quote, diffs that came before the last change, and turns that did not end as completed.
    """

    def begin(self) -> None:
        super().begin()
        self._diffs: dict[str, Frame] = {}
        self._running: set[ItemView] = set()
        self._worked: list[Frame] = []

    @on(DIFF)
    def on_diff(self, frame: Frame) -> Outcomes:
        self._diffs[self.conversation.key_of(frame)] = frame
        return None

    @on("item/started")
    def on_item_started(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is not None and item.type in _WORKING:
            self._running.add(item)
            self._worked.append(frame)
        return None

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item = self.conversation.item_of(frame)
        if item is not None and item.type in _WORKING:
            if not _ASIDE.search(text(item_in(frame).get("command"))):
                self._running.discard(item)
            self._worked.append(frame)
        return None

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        changes = self.made.pop(turn.key, []) if turn is not None else []
        last = self._diffs.pop(turn.key, None) if turn is not None else None
        if turn is None or turn.status != "completed" or last is None or not changes:
            return None
        if not began_here(self.conversation, turn):
            return None
        diff, paths = obj(last.params).get("diff"), self._certain(changes, last)
        if isinstance(diff, str) and diff.strip() and not _UNIFIED.search(diff):
            where, expected = member(last, "diff"), "a unified diff, with its headers or hunks"
            return [wrong(turn.subject, (*changes, last), where, expected)]
        if came_before(last, changes[-1]) or not isinstance(diff, str) or not paths:
            return None
        missing = [path for path in paths if PurePosixPath(path).name not in diff]
        if not missing:
            return [Witness(turn.subject, (*changes, last))]
        frames = (*changes, last)
        expected = f"names {', '.join(missing)}, which an item of the turn changed"
        return [wrong(turn.subject, frames, member(last, "diff"), expected)]

    def _certain(self, changes: list[Frame], last: Frame) -> list[str]:
        """The paths that were changed, and that nothing can have put back since."""
        if self._running:
            return []
        quiet = [
            change
            for change in changes
            if not any(came_between(change, worked, last) for worked in self._worked)
        ]
        kept = _changed_once(changes)
        return [path for path in _paths(quiet) if path in kept]


def _paths(changes: list[Frame]) -> list[str]:
    parts = [obj(part) for frame in changes for part in arr(item_in(frame).get("changes"))]
    return list(dict.fromkeys(text(part.get("path")) for part in parts))


def _changed_once(changes: list[Frame]) -> list[str]:
    """The paths that one change of these items alone is about, if their names are plain."""
    parts = [obj(part) for frame in changes for part in arr(item_in(frame).get("changes"))]
    said = {at: json.dumps([part.get("kind"), part.get("diff")]) for at, part in enumerate(parts)}
    kept: list[str] = []
    for at, part in enumerate(parts):
        path = text(part.get("path"))
        name = PurePosixPath(path).name
        others = [other for other in range(len(parts)) if other != at]
        touched = any(
            text(parts[other].get("path")) == path or name in said[other] for other in others
        )
        if _PLAIN.fullmatch(name) and not touched and part.get("diff") != "":
            kept.append(path)
    return kept
