"""Edge cases of the rules on the files and the lines of the diff of a turn."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.approval_talk import Approvals, file_item
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import THREAD, TURN, command

OWN, WHOLE = "turn.diff-own", "turn.diff-whole"
MADE = "--- /dev/null\n+++ b/one.txt\n@@ -0,0 +1 @@\n+first\n"
MADE_LONGER = "--- /dev/null\n+++ b/one.txt\n@@ -0,0 +1,2 @@\n+first\n+second\n"
ONLY_THE_SECOND = "--- a/one.txt\n+++ b/one.txt\n@@ -1 +1,2 @@\n first\n+second\n"


def worked(line: str = "make") -> dict[str, Any]:
    """Return a command that completed."""
    return command("c-1", "completed", exitCode=0, aggregatedOutput="") | {"command": line}


def changed(
    *names: str,
    again: str = "two.txt",
    status: str = "completed",
    works: bool = False,
    before: str = "",
    kind: Any = None,
) -> Approvals:
    """A turn changes one.txt, the next one `again`; its diff names these files.

    `before` is a command of the first turn.
    """
    talk = Approvals().running("never").item(file_item(status=status, name="one.txt"))
    talk.tells("turn/diff/updated", threadId=THREAD, turnId=TURN, diff="+++ b/one.txt\n")
    if before:
        talk.item(worked(before))
    talk.end_turn().start_turn("turn_2", text="and this")
    if works:
        talk.item(worked(), "turn_2")
    change = file_item("patch_2", "completed", again)
    if kind is not None:
        change["changes"][0]["kind"] = kind
    talk.item(change, "turn_2")
    diff = "".join(f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n+of one.txt\n" for name in names)
    talk.tells("turn/diff/updated", threadId=THREAD, turnId="turn_2", diff=diff)
    return talk.end_turn("turn_2")


def changed_elsewhere(*, meanwhile: bool) -> Approvals:
    """A turn of another thread changes one.txt, before or while a turn has it in its diff."""
    talk = Approvals().policy("never").start_thread("thr_2")
    if meanwhile:
        talk.start_turn("turn_1", text="hello").start_turn("turn_2", "thr_2")
    else:
        talk.start_turn("turn_2", "thr_2")
    talk.item(file_item("patch_1", "completed", "one.txt"), "turn_2", "thr_2")
    talk.tells("turn/diff/updated", threadId="thr_2", turnId="turn_2", diff="+++ b/one.txt\n")
    if meanwhile:
        talk.item(file_item("patch_0", "completed", "two.txt"))
    else:
        talk.end_turn("turn_2", "thr_2").start_turn().item(file_item("p", "completed", "two.txt"))
    diff = "+++ b/one.txt\n+++ b/two.txt\n"
    talk.tells("turn/diff/updated", threadId=THREAD, turnId=TURN, diff=diff).end_turn()
    return talk.end_turn("turn_2", "thr_2") if meanwhile else talk


def edit(old: str, new: str, number: int = 1) -> str:
    """Return a diff that replaces one line of a file, which stands between two others."""
    return (
        f"--- one.txt\t2026-01-01\n+++ one.txt\t2026-01-02\n"
        f"@@ -{number},3 +{number},3 @@ def f():\n top\n-{old}\n+{new}\n end\n"
    )


def changed_twice(first: str, second: str, *, works: bool = False) -> Approvals:
    """A turn changes one.txt twice, and has these diffs."""
    talk = Approvals().running("never")
    for number, diff in enumerate((first, second)):
        if works and number:
            talk.item(command("c-1", "completed", exitCode=0, aggregatedOutput=""))
        talk.item(file_item(f"patch_{number}", "completed", "one.txt"))
        talk.tells("turn/diff/updated", threadId=THREAD, turnId=TURN, diff=diff)
    return talk.end_turn()


LEGAL: list[Legal] = [
    Legal(WHOLE, "made-and-made-longer", lambda: changed_twice(MADE, MADE_LONGER)),
    Legal(WHOLE, "undone", lambda: changed_twice(MADE, "")),
    Legal(WHOLE, "edited-twice", lambda: changed_twice(edit("a", "b"), edit("a", "c"))),
    Legal(
        WHOLE,
        "another-place-too",
        lambda: changed_twice(
            edit("a", "b"), edit("a", "b") + edit("b", "a", 40).split("\n", 2)[2]
        ),
    ),
    Legal(WHOLE, "broken-hunk", lambda: changed_twice(edit("a", "b"), edit("b", "c")[:-5])),
    Legal(OWN, "same-file-again", lambda: changed("one.txt", again="one.txt")),
    Legal(OWN, "earlier-name-within-a-line", lambda: changed("two.txt")),
    Legal(OWN, "longer-name", lambda: changed("one.txt.old", again="one.txt.old")),
    Legal(OWN, "failed-change-seen-now", lambda: changed("one.txt", "two.txt", status="failed")),
    Legal(
        OWN,
        "command-changed-it-too",
        lambda: changed("one.txt", "two.txt", works=True),
        hints=frozenset({OWN}),
    ),
    Legal(
        OWN,
        "command-left-in-the-background",
        lambda: changed("one.txt", "two.txt", before="make & sleep 1"),
        hints=frozenset({OWN}),
    ),
    Legal(
        OWN,
        "moved-to-the-name",
        lambda: changed("one.txt", "two.txt", kind={"type": "update", "move_path": "/w/one.txt"}),
    ),
    Legal(OWN, "another-thread-meanwhile", lambda: changed_elsewhere(meanwhile=True)),
]

ILLEGAL: list[Illegal] = [
    Illegal(WHOLE, "second-change-alone", lambda: changed_twice(MADE, ONLY_THE_SECOND)),
    Illegal(WHOLE, "undoing-alone", lambda: changed_twice(edit("a", "b"), edit("b", "a"))),
    Illegal(
        WHOLE,
        "second-change-alone-after-a-command",
        lambda: changed_twice(edit("a", "b"), edit("b", "c"), works=True),
        Level.SHOULD,
    ),
    Illegal(OWN, "change-of-the-turn-before", lambda: changed("one.txt", "two.txt")),
    Illegal(
        OWN,
        "after-a-command-of-the-turn-before",
        lambda: changed("one.txt", "two.txt", before="make"),
    ),
    Illegal(OWN, "change-of-another-thread-before", lambda: changed_elsewhere(meanwhile=False)),
    Illegal(
        OWN, "after-a-command", lambda: changed("one.txt", "two.txt", works=True), Level.SHOULD
    ),
]
