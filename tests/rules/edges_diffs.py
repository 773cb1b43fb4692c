"""Edge cases of the rule on the files that the diff of a turn names."""

from harness.judge.verdict import Level
from tests.rules.approval_talk import Approvals, file_item
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import THREAD, TURN, command

OWN = "turn.diff-own"


def changed(
    *names: str, again: str = "two.txt", status: str = "completed", works: bool = False
) -> Approvals:
    """A turn changes one.txt, the next one `again`; its diff names these files."""
    talk = Approvals().running("never").item(file_item(status=status, name="one.txt"))
    talk.tells("turn/diff/updated", threadId=THREAD, turnId=TURN, diff="+++ b/one.txt\n")
    talk.end_turn().start_turn("turn_2", text="and this")
    if works:
        talk.item(command("c-1", "completed", exitCode=0, aggregatedOutput=""), "turn_2")
    talk.item(file_item("patch_2", "completed", again), "turn_2")
    diff = "".join(f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n+of one.txt\n" for name in names)
    talk.tells("turn/diff/updated", threadId=THREAD, turnId="turn_2", diff=diff)
    return talk.end_turn("turn_2")


LEGAL: list[Legal] = [
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
]

ILLEGAL: list[Illegal] = [
    Illegal(OWN, "change-of-the-turn-before", lambda: changed("one.txt", "two.txt")),
    Illegal(
        OWN, "after-a-command", lambda: changed("one.txt", "two.txt", works=True), Level.SHOULD
    ),
]
