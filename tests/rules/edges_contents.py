"""Edges of the rules on what is shown: the model's answer, diffs, output, errors."""

from typing import Any

from harness.rules.verdict import Level
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import THREAD, TURN, Talk, command

CWD = "/home/user/project"


def begun() -> Talk:
    """A running turn with the user's message."""
    return Talk().start_thread().start_turn()


def change(item: str, *names: str, status: str = "completed", **part: Any) -> dict[str, Any]:
    """A fileChange item."""
    parts = [
        {"path": f"{CWD}/{name}", "kind": {"type": "add"}, "diff": "x\n", **part} for name in names
    ]
    return {"type": "fileChange", "id": item, "status": status, "changes": parts}


def diff(talk: Talk, *names: str) -> Talk:
    """The diff of the turn, with these new files."""
    parts = [f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n" for name in names]
    return talk.tells("turn/diff/updated", threadId=THREAD, turnId=TURN, diff="".join(parts))


def removed_by_a_command() -> Talk:
    talk = diff(begun().item(change("f-1", "a.txt")), "a.txt")
    talk.item(command("c-1", "completed", command="rm a.txt"))
    return diff(talk.item(change("f-2", "b.txt")), "b.txt").end_turn()


def removed_by_what_a_command_left_running() -> Talk:
    talk = begun().item(command("c-1", "completed", command="(sleep 1; rm a.txt) & echo begun"))
    talk = diff(talk.item(change("f-1", "a.txt")), "a.txt")
    return diff(talk.item(change("f-2", "b.txt")), "b.txt").end_turn()


def moved_by_the_next_change() -> Talk:
    talk = diff(begun().item(change("f-1", "a.txt")), "a.txt")
    moved = change("f-2", "b.txt", kind={"type": "move", "from": "a.txt"}, diff="")
    return diff(talk.item(moved), "b.txt").end_turn()


def changed_nothing() -> Talk:
    talk = diff(begun().item(change("f-1", "a.txt")), "a.txt")
    return diff(talk.item(change("f-2", "b.txt", diff="")), "a.txt").end_turn()


def one_diff_for_two_at_once() -> Talk:
    talk = begun().started(change("f-1", "a.txt", status="inProgress"))
    talk.started(change("f-2", "b.txt", status="inProgress"))
    talk.completed(change("f-1", "a.txt")).completed(change("f-2", "b.txt"))
    return diff(talk, "a.txt", "b.txt").end_turn()


def diffs_that_come_later() -> Talk:
    talk = begun().item(change("f-1", "a.txt")).item(change("f-2", "b.txt"))
    return diff(diff(talk, "a.txt"), "a.txt", "b.txt").end_turn()


def one_diff_for_two() -> Talk:
    talk = begun().item(change("f-1", "a.txt")).message("m-1", "between")
    return diff(talk.item(change("f-2", "b.txt")), "a.txt", "b.txt").end_turn()


def one_diff_for_three() -> Talk:
    talk = diff(begun().item(change("f-1", "a.txt")), "a.txt").item(change("f-2", "b.txt"))
    return diff(talk.item(change("f-3", "c.txt")), "a.txt", "b.txt", "c.txt").end_turn()


def lost_file() -> Talk:
    talk = begun().item(command("c-1", "completed", command="ls && pwd"))
    talk = diff(talk.item(change("f-1", "a.txt")), "a.txt")
    return diff(talk.item(change("f-2", "b.txt")), "b.txt").end_turn()


def lost_one_of_a_change() -> Talk:
    return diff(begun().item(change("f-1", "a.txt", "b.txt")), "a.txt").end_turn()


DIFFS = [
    Legal("turn.diff-whole", "a command removed the file later", removed_by_a_command),
    Legal(
        "turn.diff-whole",
        "what a command left running removed it",
        removed_by_what_a_command_left_running,
    ),
    Legal("turn.diff-whole", "the next change moved the file", moved_by_the_next_change),
    Legal("turn.diff-whole", "a change without a difference", changed_nothing),
    Legal("turn.diff-after-change", "one diff for two changes at once", one_diff_for_two_at_once),
    Legal("turn.diff-after-change", "diffs that are computed aside", diffs_that_come_later),
]
BAD_DIFFS = [
    Illegal("turn.diff-after-change", "one diff for two", one_diff_for_two, Level.SHOULD),
    Illegal(
        "turn.diff-after-change", "one diff for the last two", one_diff_for_three, Level.SHOULD
    ),
    Illegal("turn.diff-whole", "the second diff forgets the first change", lost_file),
    Illegal("turn.diff-whole", "one of two files of a change", lost_one_of_a_change),
]

LEGAL: list[Legal] = [*DIFFS]
ILLEGAL: list[Illegal] = [*BAD_DIFFS]
