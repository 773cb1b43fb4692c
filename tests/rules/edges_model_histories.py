"""Edge cases of the rules on the history in model calls: other histories that are legal."""

from harness.judge.verdict import Level
from harness.trace.marks import Closed, ServerEnded
from tests.rules.edge import Illegal, Legal
from tests.rules.history_talk import FORK
from tests.rules.told_talk import Told, answer
from tests.rules.traces import THREAD

APPLES, PEARS, PLUMS, FIGS = "about apples", "about pears", "about plums", "about figs"
FIRST = (APPLES, answer(APPLES))
DROPPED, SENT, OTHERS = "rollback.unheard", "model.history-sent", "model.other-threads-unheard"


def two(status: str = "completed") -> Told:
    """A thread with two turns."""
    return Told().start_thread().turn(APPLES).turn(PEARS, status=status)


def compacted() -> Told:
    """A thread with two turns is compacted at the client's request."""
    talk = two().asks("thread/compact/start", threadId=THREAD).answers({})
    compaction = {"type": "contextCompaction", "id": "c-1"}
    talk.status("active").turn_started("turn_c").item(compaction, "turn_c")
    return talk.end_turn("turn_c")


def ended(*, killed: bool) -> Told:
    """The server is ended; another process of it resumes the thread."""
    return two().mark(ServerEnded(killed=killed)).mark(Closed("c1")).on("c2").reopens()


def dropped_after_a_compaction() -> Told:
    """A turn that began after a compaction is dropped."""
    return compacted().turn(PLUMS, (PEARS,)).drops()


def compacted_again(talk: Told) -> Told:
    """Another compaction is made."""
    talk.asks("thread/compact/start", threadId=THREAD).answers({})
    talk.status("active").turn_started("turn_d")
    return talk.item({"type": "contextCompaction", "id": "d-1"}, "turn_d").end_turn("turn_d")


def compaction_unreported() -> Told:
    """A compaction is granted, and perhaps made with a later turn."""
    return two().asks("thread/compact/start", threadId=THREAD).answers({})


LEGAL: list[Legal] = [
    Legal(
        DROPPED,
        "in-the-summary-of-a-second-compaction",
        lambda: compacted_again(compacted().turn(PLUMS, (PEARS,))).drops().turn(FIGS, (PLUMS,)),
    ),
    Legal(
        DROPPED,
        "rollback-beyond-a-compaction",
        lambda: compacted().turn(PLUMS, (PEARS,)).drops(2, left=2).turn(FIGS, (PEARS,)),
    ),
    Legal(
        DROPPED,
        "summarized-later-than-it-was-requested",
        lambda: compaction_unreported().turn(PLUMS, (PEARS,)).drops().turn(FIGS, (PLUMS,)),
        hints=frozenset({"compact.item-emitted", "compact.told"}),
    ),
    Legal(SENT, "compacted-on-request", lambda: compacted().turn(PLUMS, (PEARS,))),
    Legal(SENT, "compacted-by-itself", lambda: two().turn(PLUMS, (PEARS,), compacts=True)),
    Legal(SENT, "turn-lost-with-a-killed-server", lambda: ended(killed=True).turn(PLUMS, FIRST)),
    Legal(SENT, "history-in-a-new-process", lambda: ended(killed=False).turn(PLUMS)),
    Legal(SENT, "failed-turn-not-sent", lambda: two("failed").turn(PLUMS, FIRST)),
    Legal(
        DROPPED,
        "cut-off-turn-does-not-count",
        lambda: two("failed").drops(left=0).turn(PLUMS),
        hints=frozenset({"rollback.drops"}),
    ),
    Legal(DROPPED, "cut-off-turn-counts", lambda: two("failed").drops().turn(PLUMS)),
    Legal(
        DROPPED, "rollback-after-a-compaction", lambda: compacted().drops().turn(PLUMS, (PEARS,))
    ),
    Legal(DROPPED, "dropped-input-said-again", lambda: two().drops().turn(PEARS).turn(PLUMS)),
    Legal(OTHERS, "fork-has-its-threads-turns", lambda: two().copies().turn(PLUMS, thread=FORK)),
    Legal(
        OTHERS, "same-input-in-both", lambda: two().copies().turn(PLUMS, thread=FORK).turn(PLUMS)
    ),
]

ILLEGAL: list[Illegal] = [
    Illegal(
        DROPPED,
        "dropped-after-a-compaction",
        lambda: dropped_after_a_compaction().turn(FIGS, (PEARS, PLUMS)),
    ),
    Illegal(
        DROPPED,
        "dropped-after-a-compaction-and-a-restart",
        lambda: (
            dropped_after_a_compaction()
            .mark(ServerEnded(killed=False))
            .mark(Closed("c1"))
            .reopens()
            .turn(FIGS, (PEARS, answer(PLUMS)))
        ),
    ),
    Illegal(
        DROPPED,
        "dropped-after-a-compaction-of-its-fork",
        lambda: dropped_after_a_compaction().copies().turn(FIGS, (PLUMS,), thread=FORK),
    ),
    Illegal(DROPPED, "dropped-input-sent", lambda: two().drops().turn(PLUMS, (*FIRST, PEARS))),
    Illegal(
        DROPPED,
        "dropped-answer-sent-in-a-fork",
        lambda: two().drops().copies().turn(PLUMS, (*FIRST, answer(PEARS)), thread=FORK),
    ),
    Illegal(
        SENT,
        "history-lost-in-a-new-process",
        lambda: ended(killed=False).turn(PLUMS, FIRST),
        Level.SHOULD,
    ),
    Illegal(
        SENT,
        "history-lost-in-a-fork",
        lambda: two().copies().turn(PLUMS, FIRST, thread=FORK),
        Level.SHOULD,
    ),
    Illegal(
        SENT,
        "answer-lost",
        lambda: two().turn(PLUMS, (*FIRST, PEARS)),
        Level.SHOULD,
    ),
    Illegal(
        OTHERS,
        "turn-of-the-fork-in-its-thread",
        lambda: two().copies().turn(PLUMS, thread=FORK).turn("about figs", (*FIRST, PLUMS)),
        Level.SHOULD,
        also=frozenset({SENT}),
    ),
    Illegal(
        OTHERS,
        "later-turn-of-its-thread-in-the-fork",
        lambda: (
            two()
            .copies()
            .turn(PLUMS)
            .turn("about figs", (*FIRST, PEARS, answer(PEARS), PLUMS), thread=FORK)
        ),
        Level.SHOULD,
    ),
]
