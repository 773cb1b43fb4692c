"""Edge cases of threads that are resumed, forked, rolled back, and read when unloaded."""

from typing import Any

from harness.judge.verdict import Level
from harness.trace.marks import Closed, ServerEnded
from tests.rules.edge import Illegal, Legal
from tests.rules.history_talk import FORK, Past, past, stored
from tests.rules.traces import (
    THREAD,
    TROUBLE,
    TURN,
    agent_message,
    command,
    stored_plain_turn,
    thread_object,
    turn_object,
    user_message,
)

REOPENS, ANNOUNCED = "resume.reopens", "resume.not-announced"
EQUALS, FILLED, SHOWN = "resume.stored-equals-live", "turn.items-filled", "thread.history-shown"
COPIES, DROPS, REMAINING = "fork.copies-history", "rollback.drops", "rollback.remaining"
OWN, ITEMS, IDS = "turn.in-its-thread", "history.items-as-told", "history.item-ids"


def fork_rolled_back(*shown: dict[str, Any]) -> Any:
    """The fork of a thread with two turns is rolled back; another process resumes the thread."""
    talk = past(TURN, "turn_2").forks(*stored(TURN, "turn_2")).announced()
    talk.asks("thread/rollback", threadId=FORK, numTurns=1)
    left = thread_object(FORK, preview="hello", turns=stored())
    talk.answers({"thread": left}).mark(Closed("c1")).mark(ServerEnded(killed=False)).on("c2")
    return talk.resumes(*shown)


def refused_while_loaded() -> Any:
    return past().asks("thread/resume", threadId=THREAD).refuses("loaded already")


def refused_while_it_closes() -> Any:
    """The other client is gone, this one has left, and the thread is not told to be closed."""
    talk = past().on("c2").resumes(*stored()).mark(Closed("c2")).on("c1")
    talk.asks("thread/unsubscribe", threadId=THREAD).answers({"status": "unsubscribed"})
    talk.asks("thread/resume", threadId=THREAD).refuses("closing")
    return talk.tells("thread/closed", threadId=THREAD)


def refused_when_archived() -> Any:
    talk = past().asks("thread/archive", threadId=THREAD).answers({})
    talk.tells("thread/archived", threadId=THREAD).status("notLoaded")
    return talk.asks("thread/resume", threadId=THREAD).refuses("archived")


def refused_without_a_turn() -> Any:
    talk = Past().start_thread().leaves()
    return talk.asks("thread/resume", threadId=THREAD).refuses("nothing is stored")


def refused_without_a_turn_after_its_server(*, killed: bool) -> Any:
    """The server of a thread without a turn is ended; the next one has nothing of it."""
    talk = Past().start_thread().mark(Closed("c1")).mark(ServerEnded(killed=killed)).on("c2")
    return talk.asks("thread/resume", threadId=THREAD).refuses("nothing is stored")


def refused_after_a_restart() -> Any:
    talk = past().mark(Closed("c1")).on("c2")
    return talk.asks("thread/resume", threadId=THREAD).refuses("no such thread")


def announced_late_to_another() -> Any:
    """The second client hears of the thread's start after it has resumed it."""
    return past().on("c2").resumes(*stored()).announced(THREAD)


def announced_after_a_restart() -> Any:
    return past().mark(Closed("c1")).on("c2").resumes(*stored()).announced(THREAD)


def fork_told_after_it_was_asked_for_again() -> Any:
    """There was another client, which is gone."""
    talk = past().on("c2").resumes(*stored()).mark(Closed("c2")).on("c1").forks(*stored())
    talk.asks("thread/resume", threadId=FORK).announced()
    return talk.shows(*stored(), thread=FORK)


def opened_by_another_request_too() -> Any:
    """The thread was archived and comes back; that it is announced anew is not forbidden."""
    talk = past().asks("thread/archive", threadId=THREAD).answers({})
    talk.tells("thread/archived", threadId=THREAD).status("notLoaded").resumes(*stored())
    talk.asks("thread/unarchive", threadId=THREAD).tells("thread/unarchived", threadId=THREAD)
    return talk.announced(THREAD).answers({"thread": thread_object(preview="hello")})


def parts_kept_as_one(between: str) -> Any:
    """The two texts of an input are kept as one."""
    said = [{"type": "text", "text": "hello"}, {"type": "text", "text": "world"}]
    talk = Past().start_thread().asks("turn/start", threadId=THREAD, input=said).reply_turn()
    talk.status("active").turn_started()
    talk.item({"type": "userMessage", "id": "u", "content": said})
    talk.message("m", "Yes.").end_turn()
    items = [user_message("u", f"hello{between}world"), agent_message("m", "Yes.")]
    return talk.resumes(turn_object(status="completed", items=items), preview="hello world")


def cut_off(status: str, *kept: dict[str, Any], error: Any = None) -> Any:
    """A turn that was cut off after a message and within another; so much of it is kept."""
    talk = Past().start_thread().start_turn().message("m-1", "One.")
    talk.started(agent_message("m-2", "")).delta("m-2", "Tw")
    if status == "interrupted":
        talk.interrupt().answers({})
    talk.end_turn(status=status, error=error)
    return talk.resumes(turn_object(status=status, items=list(kept), error=error))


HELLO = user_message("u", "hello")
ONE = agent_message("m-1", "One.")


def running_when_forked(*turns: dict[str, Any]) -> Any:
    """A thread is forked while its second turn runs."""
    talk = past().start_turn("turn_2").forks(*turns).announced()
    return talk.message("m-2", "Yes.", turn="turn_2").end_turn("turn_2")


def forked_under_new_ids(*turns: dict[str, Any]) -> Any:
    return past(TURN, "turn_2").forks(*turns).announced()


def forked_of_a_fork() -> Any:
    """The turn of a fork is in a fork of that fork, and not in the first thread."""
    talk = past().forks(*stored()).announced().plain_turn("turn_2", FORK)
    talk.asks("thread/fork", threadId=FORK)
    talk.shows(*stored(TURN, "turn_2"), thread="thr_3").announced("thr_3")
    talk.resumes(*stored(TURN, "turn_2"), thread="thr_3")
    return talk.read(*stored())


def ids_counted_by_thread() -> Any:
    """Each thread counts its turns from one; two of one id say the same."""
    talk = past().start_thread("thr_2").plain_turn(TURN, "thr_2")
    return talk.read(*stored()).read(*stored(), thread="thr_2")


def rolled_back_after_a_compaction(*left: dict[str, Any], looks: bool = False) -> Any:
    """A compaction counts as a turn, or does not, or has done away with the turns before it."""
    talk = past(TURN, "turn_2").asks("thread/compact/start", threadId=THREAD).answers({})
    talk.turn_started("turn_3").status("active")
    cut = {"type": "contextCompaction", "id": "cut"}
    talk.item(cut, "turn_3").end_turn("turn_3")
    if looks:
        talk.read(*stored(TURN, "turn_2"), turn_object("turn_3", "completed", items=[cut]))
    return talk.rolls_back(*left)


def rolled_back_before_the_compaction_was_told(*, refused: bool) -> Any:
    """The compaction was accepted, and is reported after the rollback dropped it."""
    talk = past(TURN, "turn_2").asks("thread/compact/start", threadId=THREAD)
    if refused:
        return talk.refuses("too short").rolls_back(*stored(TURN, "turn_2"))
    talk.answers({}).rolls_back(*stored(TURN, "turn_2"))
    talk.turn_started("turn_3").status("active")
    return talk.item({"type": "contextCompaction", "id": "cut"}, "turn_3").end_turn("turn_3")


def rolled_back_by_too_many(*, refused: bool) -> Any:
    talk = past().asks("thread/rollback", threadId=THREAD, numTurns=5)
    if refused:
        return talk.refuses("so many there are not").read(*stored())
    return past().rolls_back(number=5)


def rolled_back_by_who_knows_what() -> Any:
    """The request has two numbers; it is unknown which of them is the number of turns."""
    talk = past().asks("thread/rollback", threadId=THREAD, numTurns=-0.0, limit=1)
    return talk.answers({"thread": thread_object(turns=[*stored()])})


def rolled_back_without_items() -> Any:
    return past(TURN, "turn_2").rolls_back(turn_object(status="completed"))


def rolled_back_over_a_failed_turn(*left: dict[str, Any]) -> Any:
    """The last turn failed; a server that keeps none such drops the one before."""
    talk = past().start_turn("turn_2").end_turn("turn_2", status="failed", error=TROUBLE)
    return talk.rolls_back(*left)


def without_the_command() -> Any:
    """A turn with a command, of which the messages alone are kept."""
    talk = Past().start_thread().start_turn().item(command("c-1", "completed"))
    talk.message("m", "Done.").end_turn()
    return talk.resumes(turn_object(status="completed", items=[HELLO, agent_message("m", "Done.")]))


def output_kept_shorter() -> Any:
    """The stored command lacks its output."""
    done = command("c-1", "completed", aggregatedOutput="a.txt", exitCode=0)
    talk = Past().start_thread().start_turn().item(done).message("m", "Done.").end_turn()
    items = [HELLO, command("c-1", "completed"), agent_message("m", "Done.")]
    return talk.read(turn_object(status="completed", items=items))


def commands_in_the_order_of_their_ends() -> Any:
    """Two commands run at once; they are kept as they ended, under other ids."""
    one, two = (command(each, command=f"make {each}") for each in ("c-1", "c-2"))
    talk = Past().start_thread().start_turn().started(one).started(two)
    done = [{**each, "status": "completed"} for each in (two, one)]
    for each in done:
        talk.completed(each)
    talk.message("m", "Done.").end_turn()
    kept = [{**each, "id": f"item-{at}"} for at, each in enumerate(reversed(done))]
    return talk.read(
        turn_object(status="completed", items=[HELLO, *kept, agent_message("m", "Done.")])
    )


def compacted_away() -> Any:
    """After a compaction the turns before it are shown no more."""
    talk = past().asks("thread/compact/start", threadId=THREAD).answers({})
    talk.turn_started("turn_2").status("active")
    cut = {"type": "contextCompaction", "id": "cut"}
    talk.item(cut, "turn_2").end_turn("turn_2").plain_turn("turn_3")
    return talk.resumes(turn_object("turn_2", "completed", items=[cut]), *stored("turn_3"))


def forked_without_streamed_input() -> Any:
    """A server that streams no user messages stores them all the same."""
    talk = Past().start_thread().ask_turn(THREAD, "hello").reply_turn()
    talk.status("active").turn_started().message(f"{TURN}-msg", "Hel", "lo").end_turn()
    return talk.forks(*stored()).announced()


def forked_after_steering(*texts: str, is_first_streamed: bool = True) -> Any:
    """The first message of the user ends after the one that steered its turn."""
    first, second = user_message("u-1", "begin"), user_message("u-2", "and more")
    talk = Past().start_thread().ask_turn(THREAD, "begin").reply_turn()
    talk.status("active").turn_started()
    if is_first_streamed:
        talk.started(first)
    talk.asks("turn/steer", threadId=THREAD, expectedTurnId=TURN, input=second["content"])
    talk.answers({"turnId": TURN}).item(second)
    if is_first_streamed:
        talk.completed(first)
    talk.message("m", "Yes.").end_turn()
    kept = [user_message(f"item-{at}", text) for at, text in enumerate(texts)]
    items = [*kept, agent_message("item-9", "Yes.")]
    return talk.forks(turn_object(status="completed", items=items), preview="begin").announced()


LEGAL: list[Legal] = [
    Legal(REOPENS, "refused while loaded", refused_while_loaded),
    Legal(REOPENS, "refused while it closes", refused_while_it_closes),
    Legal(REOPENS, "refused when archived", refused_when_archived),
    Legal(REOPENS, "refused without a turn", refused_without_a_turn, frozenset({REOPENS})),
    Legal(
        REOPENS,
        "refused without a turn after a kill",
        lambda: refused_without_a_turn_after_its_server(killed=True),
        frozenset({REOPENS}),
    ),
    Legal(ANNOUNCED, "the start told late to another", announced_late_to_another),
    Legal(
        ANNOUNCED,
        "the fork told after it was asked for again",
        fork_told_after_it_was_asked_for_again,
    ),
    *[
        Legal(EQUALS, f"parts kept as one {at}", lambda between=between: parts_kept_as_one(between))
        for at, between in enumerate(("", " ", "\n"))
    ],
    Legal(
        EQUALS,
        "half a message kept",
        lambda: cut_off("interrupted", HELLO, ONE, agent_message("m-2", "Tw")),
    ),
    Legal(EQUALS, "half a message not kept", lambda: cut_off("interrupted", HELLO, ONE)),
    Legal(EQUALS, "only what the user said kept", lambda: cut_off("failed", HELLO, error=TROUBLE)),
    Legal(
        FILLED,
        "nothing kept of a failed turn",
        lambda: cut_off("failed", error=TROUBLE),
        frozenset({FILLED}),
    ),
    Legal(
        FILLED,
        "nothing kept of an interrupted turn",
        lambda: cut_off("interrupted"),
        frozenset({FILLED}),
    ),
    Legal(
        ANNOUNCED,
        "opened by another request too",
        opened_by_another_request_too,
    ),
    Legal(COPIES, "without the running turn", lambda: running_when_forked(*stored())),
    Legal(
        COPIES,
        "with the running turn",
        lambda: running_when_forked(*stored(), turn_object("turn_2", "inProgress", items=[HELLO])),
    ),
    Legal(
        COPIES,
        "with the running turn as interrupted",
        lambda: running_when_forked(*stored(), turn_object("turn_2", "interrupted", items=[HELLO])),
    ),
    Legal(COPIES, "under new ids", lambda: forked_under_new_ids(*stored("turn_8", "turn_9"))),
    Legal(COPIES, "input that was not streamed", forked_without_streamed_input),
    Legal(COPIES, "input as it began", lambda: forked_after_steering("begin", "and more")),
    Legal(COPIES, "input as it ended", lambda: forked_after_steering("and more", "begin")),
    Legal(
        COPIES,
        "input of which the steered part was streamed",
        lambda: forked_after_steering("begin", "and more", is_first_streamed=False),
    ),
    Legal(OWN, "a fork of a fork", forked_of_a_fork),
    Legal(OWN, "ids counted by thread", ids_counted_by_thread),
    Legal(OWN, "compacted away", compacted_away, frozenset({EQUALS})),
    Legal(
        DROPS,
        "a compaction counts",
        lambda: rolled_back_after_a_compaction(*stored(TURN, "turn_2")),
    ),
    Legal(
        DROPS,
        "a compaction does not count",
        lambda: rolled_back_after_a_compaction(*stored(), looks=True),
    ),
    Legal(DROPS, "compacted away, then dropped", rolled_back_after_a_compaction),
    Legal(
        DROPS,
        "a compaction told later",
        lambda: rolled_back_before_the_compaction_was_told(refused=False),
    ),
    Legal(OWN, "its fork rolled back", lambda: fork_rolled_back(*stored(TURN, "turn_2"))),
    Legal(DROPS, "too many are all", lambda: rolled_back_by_too_many(refused=False)),
    Legal(DROPS, "too many are refused", lambda: rolled_back_by_too_many(refused=True)),
    Legal(DROPS, "two numbers", rolled_back_by_who_knows_what),
    Legal(DROPS, "turns without items", rolled_back_without_items),
    Legal(
        DROPS, "a failed turn does not count", rolled_back_over_a_failed_turn, frozenset({DROPS})
    ),
    Legal(DROPS, "a failed turn counts", lambda: rolled_back_over_a_failed_turn(*stored())),
    Legal(ITEMS, "messages alone kept", without_the_command, frozenset({ITEMS})),
    Legal(ITEMS, "output not kept", output_kept_shorter),
    Legal(ITEMS, "commands as they ended", commands_in_the_order_of_their_ends, frozenset({IDS})),
]
ILLEGAL: list[Illegal] = [
    Illegal(
        DROPS,
        "no turn after a refused compaction",
        lambda: rolled_back_before_the_compaction_was_told(refused=True),
    ),
    Illegal(
        DROPS,
        "one turn too many after a compaction",
        lambda: rolled_back_after_a_compaction(looks=True),
    ),
    Illegal(COPIES, "steered input lost", lambda: forked_after_steering("begin")),
    Illegal(REOPENS, "refused after a restart", refused_after_a_restart),
    Illegal(
        REOPENS,
        "refused without a turn after an orderly end",
        lambda: refused_without_a_turn_after_its_server(killed=False),
        Level.SHOULD,
    ),
    Illegal(ANNOUNCED, "announced after a restart", announced_after_a_restart, Level.SHOULD),
    Illegal(
        EQUALS,
        "another error",
        lambda: cut_off("failed", HELLO, error=TROUBLE).resumes(
            turn_object(status="failed", items=[HELLO], error={**TROUBLE, "message": "no"})
        ),
        Level.SHOULD,
    ),
    Illegal(
        EQUALS,
        "words that nobody said",
        lambda: cut_off(
            "interrupted", HELLO, agent_message("m-1", "Two."), agent_message("m-2", "Three.")
        ),
        Level.SHOULD,
    ),
    Illegal(COPIES, "fewer turns under new ids", lambda: forked_under_new_ids(*stored("turn_8"))),
    Illegal(
        COPIES,
        "turns under new ids in another order",
        lambda: (
            past()
            .start_turn("turn_2")
            .message("m-2", "Yes.", turn="turn_2")
            .end_turn("turn_2")
            .forks(
                turn_object(
                    "turn_8",
                    "completed",
                    items=[HELLO, agent_message("m", "Yes.")],
                ),
                stored_plain_turn("turn_9"),
            )
            .announced()
        ),
    ),
    Illegal(
        DROPS,
        "drops one too many",
        lambda: past(TURN, "turn_2", "turn_3").rolls_back(*stored()),
    ),
    Illegal(
        REMAINING,
        "dropped turn comes back",
        lambda: (
            past(TURN, "turn_2").rolls_back(*stored()).leaves().resumes(*stored(TURN, "turn_2"))
        ),
        Level.SHOULD,
    ),
    Illegal(
        OWN,
        "a turn of the fork in the first thread",
        lambda: (
            past()
            .forks(*stored())
            .announced()
            .plain_turn("turn_2", FORK)
            .resumes(*stored(TURN, "turn_2"))
        ),
    ),
    Illegal(
        REOPENS,
        "refused without a turn after it was left",
        refused_without_a_turn,
        Level.SHOULD,
    ),
    Illegal(
        ANNOUNCED,
        "a fork announced twice",
        lambda: (
            past()
            .forks(*stored())
            .announced()
            .asks("thread/resume", threadId=FORK)
            .announced()
            .shows(*stored(), thread=FORK)
        ),
        Level.SHOULD,
    ),
    Illegal(
        ANNOUNCED,
        "announced before the answer",
        lambda: (
            past()
            .leaves()
            .asks("thread/resume", threadId=THREAD)
            .announced(THREAD)
            .shows(*stored())
        ),
        Level.SHOULD,
    ),
    Illegal(
        DROPS,
        "drops the first",
        lambda: past(TURN, "turn_2").rolls_back(*stored("turn_2")),
    ),
    Illegal(
        REMAINING,
        "a turn that was left is lost when it is read",
        lambda: (
            past(TURN, "turn_2", "turn_3")
            .rolls_back(*stored(TURN, "turn_2"))
            .read(*stored("turn_2"))
        ),
        Level.SHOULD,
    ),
    Illegal(
        OWN,
        "not in its thread after a restart",
        lambda: past(TURN, "turn_2").mark(Closed("c1")).on("c2").resumes(*stored()),
        also=frozenset({EQUALS}),
    ),
    Illegal(
        OWN,
        "dropped with a turn of its fork, after a restart",
        lambda: fork_rolled_back(*stored()),
        also=frozenset({EQUALS}),
    ),
]
