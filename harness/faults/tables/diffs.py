"""Faults of the diff of a turn."""

from harness.faults import stored as op
from harness.faults.base import fault
from harness.faults.scene import NotApplied, Scene
from harness.trace.frame import Frame
from harness.trace.trace import Trace


def _diffs(scene: Scene) -> list[Frame]:
    found = [frame for frame in scene.trace.frames if frame.method == "turn/diff/updated"]
    if not found:
        raise NotApplied("no diff of a turn")
    return found


@fault(
    "diff-not-told",
    rule="turn.diff-after-change",
    on="file-changes",
    reason="turn/diff/updated follows every fileChange item.",
)
def diff_not_told(scene: Scene) -> Trace:
    """No diff at all."""
    return op.drop(scene.trace, *_diffs(scene))


@fault(
    "diff-before-the-change",
    rule="turn.diff-after-change",
    on="file-changes",
    reason="turn/diff/updated follows every fileChange item, and one before it does not.",
)
def diff_before_the_change(scene: Scene) -> Trace:
    """The diff comes before the item is completed."""
    diff = _diffs(scene)[0]
    before = scene.trace.frames[diff.seq - 2]
    return op.move(scene.trace, diff, after=before)


@fault(
    "diff-of-nothing",
    rule="turn.diff-whole",
    on="file-changes",
    reason="The diff is the unified diff of the whole turn.",
)
def diff_of_nothing(scene: Scene) -> Trace:
    """A diff that has none of the files that the turn changed."""
    return op.edit(scene.trace, _diffs(scene)[0], ("params", "diff"), "")
