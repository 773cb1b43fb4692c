"""Edge cases of lists of threads that were named again, rolled back or compacted."""

from harness.judge.verdict import Level
from tests.rules.edge import Illegal, Legal
from tests.rules.list_talk import begin, listed, names, page
from tests.rules.traces import THREAD, Talk, stored_plain_turn, thread_object

OLD, COMPLETE = "list.old-name-gone", "list.complete"


def renamed(*later: str, said: str = "hello") -> Talk:
    """A thread with a turn is named Garden, and then otherwise."""
    talk = begin(Talk(), 1) if said == "hello" else Talk().start_thread()
    if said != "hello":
        talk.start_turn(text=said).message("m-1", "Yes.").end_turn()
    for name in ("Garden", *later):
        names(talk, name)
    return talk


def searched(talk: Talk, *threads: int, preview: str = "hello") -> Talk:
    """The threads are listed that have Gard in their titles."""
    return page(talk, *(listed(number, preview=preview) for number in threads), searchTerm="Gard")


def rolled_back(*turns: str, number: int = 1) -> Talk:
    """A thread with three turns is rolled back by `number`, to these turns."""
    talk = begin(Talk(), 1).plain_turn("turn_2").plain_turn("turn_3")
    talk.asks("thread/rollback", threadId=THREAD, numTurns=number)
    left = [stored_plain_turn(turn) for turn in turns]
    return talk.answers({"thread": thread_object(preview="hello", turns=left)})


def compacted() -> Talk:
    """A thread with a turn is compacted."""
    talk = begin(Talk(), 1).asks("thread/compact/start", threadId=THREAD).answers({})
    talk.status("active").turn_started("turn_2")
    return talk.item({"type": "contextCompaction", "id": "c-1"}, "turn_2").end_turn("turn_2")


LEGAL: list[Legal] = [
    Legal(OLD, "named-so-again", lambda: searched(renamed("Kitchen", "Garden"), 1)),
    Legal(OLD, "part-of-the-last-name", lambda: searched(renamed("My Garden"), 1)),
    Legal(
        OLD,
        "said-in-a-turn-too",
        lambda: searched(renamed("Kitchen", said="Gardens?"), 1, preview="Gardens?"),
    ),
    Legal(COMPLETE, "thread-without-any-turn-left", lambda: page(rolled_back(number=3))),
    Legal(COMPLETE, "thread-after-a-compaction", lambda: page(compacted(), listed(1))),
]

ILLEGAL: list[Illegal] = [
    Illegal(
        OLD, "first-of-three-names", lambda: searched(renamed("Shed", "Hall"), 1), Level.SHOULD
    ),
    Illegal(OLD, "name-before", lambda: searched(renamed("Kitchen"), 1), Level.SHOULD),
    Illegal(COMPLETE, "lost-after-a-rollback", lambda: page(rolled_back("turn_1", "turn_2"))),
    Illegal(COMPLETE, "lost-after-a-compaction", lambda: page(compacted())),
]
