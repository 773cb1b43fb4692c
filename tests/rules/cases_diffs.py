"""Cases of the rules on the diff of a turn."""

from harness.judge.verdict import Level
from tests.rules.approval_talk import Approvals, file_item
from tests.rules.case import Case, Found
from tests.rules.traces import THREAD, TURN

FIRST, SECOND = "item patch_1 of turn turn_1", "item patch_2 of turn turn_1"
THIRD = "item patch_3 of turn turn_2"


def running() -> Approvals:
    return Approvals().running("never")


def changed(talk: Approvals, item: str = "patch_1", status: str = "completed") -> Approvals:
    """Add a file change without approval: two messages."""
    return talk.item(file_item(item, status))


def both(talk: Approvals) -> Approvals:
    """Add two concurrent file changes: four messages."""
    talk.started(file_item()).started(file_item("patch_2"))
    return talk.completed(file_item("patch_2", "completed")).completed(
        file_item(status="completed")
    )


def told(talk: Approvals, diff: str = "+++ b/made.txt\n") -> Approvals:
    return talk.tells("turn/diff/updated", threadId=THREAD, turnId=TURN, diff=diff)


def second(diff: str, name: str = "new.txt") -> Approvals:
    """Two turns with a file change each; the second one has this diff."""
    talk = told(changed(running())).end_turn().start_turn("turn_2")
    talk.item(file_item("patch_2", "completed", name), "turn_2")
    talk.tells("turn/diff/updated", threadId=THREAD, turnId="turn_2", diff=diff)
    return talk.end_turn("turn_2")


CASES = [
    Case(
        rule="turn.diff-after-change",
        # One diff after two changes that were made together follows both of them.
        good=told(both(running())).end_turn(),
        witnesses=(SECOND, FIRST),
        # One that comes after the end of its turn; and none at all.
        bad=told(changed(told(changed(running())), "patch_2").end_turn())
        .start_turn("turn_2")
        .item(file_item("patch_3", "completed"), "turn_2")
        .end_turn("turn_2"),
        found=(Found(SECOND, (13, 15, 16), Level.SHOULD), Found(THIRD, (24, 26))),
        # Declined, failed; and a turn that was interrupted.
        not_exercised=changed(changed(changed(running(), status="declined"), "b", "failed"), "c")
        .interrupt()
        .answers({})
        .end_turn(status="interrupted"),
    ),
    Case(
        rule="turn.diff-whole",
        good=told(changed(running())).end_turn(),
        witnesses=("turn turn_1",),
        bad=told(changed(running()), "+++ b/other.txt\n").end_turn(),
        found=(Found("turn turn_1", (10, 11)),),
        # Changed twice, and so perhaps not at all; told before the last change.
        not_exercised=told(changed(changed(running()), "patch_2"), "").end_turn(),
    ),
    Case(
        rule="turn.diff-own",
        good=second("+++ b/new.txt\n"),
        witnesses=("turn turn_2",),
        bad=second("+++ b/new.txt\n--- a/made.txt\n"),
        found=(Found("turn turn_2", (10, 22)),),
        # The second turn changes the same file again.
        not_exercised=second("+++ b/made.txt\n", "made.txt"),
    ),
]
