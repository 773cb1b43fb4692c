"""Rules on the diff of a turn: that it follows each file change, and speaks of all of them.

Here: turn/diff/updated against the fileChange items of its turn ("Events"). Not here: the items
themselves, and how a change is written within an item, whose format is not shown.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import re
from pathlib import PurePosixPath

from harness.rules.base import Monitor, Outcomes, Violation, Witness, on, rule
from harness.rules.subjects import began_here, item_in
from harness.rules.telling import absent, member, wrong
from harness.rules.verdict import Level
from harness.trace.frame import Frame
from harness.trace.values import arr, obj, text

DIFF = "turn/diff/updated"
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


@rule(
    "turn.diff-after-change",
    title="The diff of the turn follows every file change",
    level=Level.MUST,
    needs=("file-change",),
)
class DiffAfterChange(_Changes):
    """Judges that turn/diff/updated comes between a fileChange that was made and its turn's end.

    One diff may follow several changes that were completed together. One that comes after the end
    of the turn is SHOULD: that it belongs to the work follows from notifications being streamed
    while that runs. Left open: changes that were declined or failed, which left nothing to tell,
    and turns that did not end as completed.
    """

    def begin(self) -> None:
        super().begin()
        self._missed: dict[str, tuple[list[Frame], Frame]] = {}

    @on(DIFF)
    def told(self, frame: Frame) -> Outcomes:
        turn = self.conversation.key_of(frame)
        late, end = self._missed.pop(turn, ([], frame))
        yield from (self._violation(x, end, "came after the end", frame) for x in late)
        for change in self.made.pop(turn, []):
            yield Witness(self.subject(change), (change, frame))

    @on("turn/completed")
    def ended(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        changes = self.made.pop(turn.key, []) if turn is not None else []
        if turn is None or turn.status != "completed" or turn.missed:
            return None
        if changes:
            self._missed[turn.key] = (changes, frame)
        return None

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

    Only by its name: in which form paths stand in a diff is not shown. Left open: files that
    several changes of the turn touched, which may be as they were, names that a diff may quote,
    diffs that came before the last change, and turns that did not end as completed.
    """

    def begin(self) -> None:
        super().begin()
        self._diffs: dict[str, Frame] = {}

    @on(DIFF)
    def told(self, frame: Frame) -> Outcomes:
        self._diffs[self.conversation.key_of(frame)] = frame
        return None

    @on("turn/completed")
    def ended(self, frame: Frame) -> Outcomes:
        turn = self.conversation.turn_of(frame)
        changes = self.made.pop(turn.key, []) if turn is not None else []
        last = self._diffs.pop(turn.key, None) if turn is not None else None
        if turn is None or turn.status != "completed" or last is None or not changes or turn.missed:
            return None
        diff, paths = obj(last.params).get("diff"), _changed_once(changes)
        if last.seq < changes[-1].seq or not isinstance(diff, str) or not paths:
            return None
        missing = [path for path in paths if PurePosixPath(path).name not in diff]
        if not missing:
            return [Witness(turn.subject, (*changes, last))]
        frames = (*changes, last)
        expected = f"names {', '.join(missing)}, which an item of the turn changed"
        return [wrong(turn.subject, frames, member(last, "diff"), expected)]


def _changed_once(changes: list[Frame]) -> list[str]:
    """The paths that one change of these items is about, if their names are plain."""
    paths = [
        text(obj(change).get("path"))
        for frame in changes
        for change in arr(item_in(frame).get("changes"))
    ]
    return [
        path
        for path in dict.fromkeys(paths)
        if paths.count(path) == 1 and _PLAIN.fullmatch(PurePosixPath(path).name)
    ]
