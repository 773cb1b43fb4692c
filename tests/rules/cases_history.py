"""Cases of the rules on threads that are resumed and forked."""

from harness.judge.verdict import Level
from tests.rules.case import Case, Found, silent
from tests.rules.history_talk import FORK, Past, past, stored
from tests.rules.traces import (
    THREAD,
    TURN,
    Talk,
    agent_message,
    command,
    turn_object,
    user_message,
)

SUBJECT, COPY = "thread thr_1", "thread thr_2"
OTHER = turn_object(
    status="completed", items=[user_message("u", "hello"), agent_message("m", "Hell")]
)
EMPTY = turn_object(status="completed")


def _strange() -> Past:
    """Return a talk in which a thread unknown so far is resumed, and a thread forked."""
    talk = Past().resumes(OTHER)
    talk.forks(*stored()).announced()
    return talk


def _rollbacks_of_which_nothing_is_known() -> Past:
    talk = past().asks("thread/rollback", threadId=THREAD, numTurns=1).refuses()
    talk.rolls_back(number=0).start_turn("turn_2").rolls_back(*stored())
    return talk.end_turn("turn_2").asks("thread/rollback", threadId=THREAD, one=1, two=2).refuses()


def _with_a_command(item: str, status: str) -> Past:
    """Return a talk with a turn with a completed command, and a thread/read that shows it so."""
    talk = Past().start_thread().start_turn().item(command("c-1", "completed"))
    talk.item(agent_message("m", "Hell")).end_turn()
    said = [user_message("u", "hello"), agent_message("m", "Hell"), command(item, status)]
    return talk.read(turn_object(status="completed", items=said))


CASES = [
    Case(
        rule="resume.reopens",
        good=past().leaves().resumes(*stored()),
        witnesses=(SUBJECT,),
        # plain_turn ends at 14; leaves: 15 to 18; thread/resume 19.
        bad=past().leaves().asks("thread/resume", threadId=THREAD).refuses(),
        found=(Found(SUBJECT, (14, 20)),),
        not_exercised=_strange().asks("thread/resume", threadId="thr_9").refuses(),
    ),
    Case(
        rule="resume.same-thread",
        good=_strange(),
        witnesses=(SUBJECT,),
        bad=Past().asks("thread/resume", threadId=THREAD).shows(thread="thr_9"),
        found=(Found(SUBJECT, (0, 1)),),
        not_exercised=past().asks("thread/resume", threadId=THREAD).refuses(),
    ),
    Case(
        rule="resume.not-announced",
        good=past().leaves().resumes(*stored()),
        witnesses=(SUBJECT,),
        # leaves: 15 to 18; thread/resume 19.
        bad=past().leaves().resumes(*stored()).announced(THREAD),
        found=(Found(SUBJECT, (19, 21), Level.SHOULD),),
        not_exercised=_strange().announced(THREAD),
    ),
    Case(
        rule="thread.history-shown",
        good=past().resumes(*stored()).forks(*stored()).announced(),
        witnesses=(SUBJECT, COPY),
        bad=past().resumes().forks().announced(),
        found=(Found(SUBJECT, (14, 16), Level.SHOULD), Found(COPY, (14, 18), Level.SHOULD)),
        not_exercised=Past().start_thread().resumes().forks().announced().resumes(thread="thr_9"),
    ),
    Case(
        rule="turn.items-filled",
        good=past().resumes(*stored()).forks(*stored("turn_8")).announced(),
        witnesses=("turn turn_1", "turn turn_8"),
        bad=past().resumes(EMPTY).forks(turn_object("turn_8", "completed")).announced(),
        # The first item/completed of a plain turn is 8.
        found=(Found("turn turn_1", (8, 16)), Found("turn turn_8", (8, 18))),
        not_exercised=Past().start_thread().start_turn().resumes(turn_object()),
    ),
    Case(
        rule="resume.stored-equals-live",
        good=past().resumes(*stored()),
        witnesses=("turn turn_1",),
        bad=past().resumes(OTHER).resumes(*stored("turn_7")),
        found=(
            Found("turn turn_1", (14, 16), Level.SHOULD),
            Found("turn turn_1", (14, 18), Level.SHOULD),
        ),
        not_exercised=_strange(),
    ),
    Case(
        rule="fork.new-id",
        good=_strange(),
        witnesses=(COPY,),
        bad=Past().forks(fork=THREAD),
        found=(Found(SUBJECT, (0, 1)),),
        not_exercised=silent(),
    ),
    Case(
        rule="fork.announced",
        good=_strange(),
        witnesses=(COPY,),
        bad=Past().forks().announced().announced().forks(fork="thr_3"),
        found=(Found(COPY, (2, 3)), Found("thread thr_3", (5,))),
        not_exercised=Talk().start_thread(FORK),
    ),
    Case(
        rule="fork.copies-history",
        good=past().forks(*stored()).announced(),
        witnesses=(COPY,),
        bad=past(TURN, "turn_2")
        .forks(OTHER, *stored("turn_2"))
        .announced()
        .forks(*stored("turn_8"), fork="thr_3")
        .announced("thr_3"),
        # The second turn ends at 26.
        found=(Found(COPY, (14, 28)), Found("thread thr_3", (26, 31))),
        not_exercised=_strange(),
    ),
    Case(
        rule="rollback.drops",
        good=past(TURN, "turn_2").rolls_back(*stored()),
        witnesses=(SUBJECT,),
        # The second turn ends at 26; thread/rollback 27.
        bad=past(TURN, "turn_2").rolls_back(*stored(TURN, "turn_2")).rolls_back(*stored()),
        found=(Found(SUBJECT, (26, 28)), Found(SUBJECT, (14, 30))),
        # Refused; by more turns than there are; while a turn runs; by a number that is not said.
        not_exercised=_rollbacks_of_which_nothing_is_known(),
    ),
    Case(
        rule="rollback.remaining",
        good=past(TURN, "turn_2").rolls_back(*stored()).read(*stored()),
        witnesses=(SUBJECT,),
        bad=past(TURN, "turn_2")
        .rolls_back(OTHER)
        .read(*stored(TURN, "turn_2"))
        .resumes(OTHER)
        .read(*stored("turn_7")),
        found=(
            Found("turn turn_1", (14, 28), Level.SHOULD),
            Found(SUBJECT, (26, 28, 30), Level.SHOULD),
            Found("turn turn_1", (14, 32), Level.SHOULD),
            Found(SUBJECT, (14, 28, 34), Level.SHOULD),
        ),
        not_exercised=_rollbacks_of_which_nothing_is_known().read(*stored()),
    ),
    Case(
        rule="read.not-resumed",
        good=past().leaves().loads().read(*stored()).loads("thr_9"),
        witnesses=(SUBJECT,),
        # leaves: 15 to 18, the first list 19 and 20, thread/read 21.
        bad=past().leaves().loads().read(*stored()).loads("thr_9", THREAD),
        found=(Found(SUBJECT, (20, 22, 24)),),
        # Loaded before; opened by a request; a list of which there is more.
        not_exercised=past()
        .loads(THREAD)
        .read(*stored())
        .loads(THREAD)
        .leaves()
        .loads()
        .resumes(*stored())
        .read(*stored())
        .loads(THREAD)
        .loads()
        .read(*stored())
        .loads(THREAD, nextCursor="more"),
    ),
    Case(
        rule="turn.in-its-thread",
        good=past().forks(*stored()).announced().plain_turn("turn_2").read(*stored(TURN, "turn_2")),
        witnesses=("turn turn_1", "turn turn_2"),
        # thread/fork 15 to 17; the turn of the fork: its reply 19, its end 29.
        bad=past().forks(*stored()).announced().plain_turn("turn_2", FORK).read(*stored("turn_2")),
        found=(Found("turn turn_1", (4, 14, 31)), Found("turn turn_2", (19, 31))),
        # A copy of a turn that was there before; a thread that nobody started here.
        not_exercised=Past().resumes(*stored()).read(*stored("turn_2")),
    ),
    Case(
        rule="history.items-as-told",
        good=_with_a_command("c-1", "completed"),
        witnesses=("turn turn_1",),
        # item/started of the command 9, the message 11 and 12, turn/completed 14.
        bad=_with_a_command("c-1", "failed").read(OTHER),
        found=(
            Found("turn turn_1", (14, 16), Level.SHOULD),
            Found("turn turn_1", (14, 18), Level.SHOULD),
        ),
        not_exercised=past().read(*stored()),
    ),
    Case(
        rule="history.item-ids",
        good=past().read(*stored()),
        witnesses=("item ids",),
        bad=past().read(
            turn_object(
                status="completed",
                items=[user_message("item-1", "hello"), agent_message("item-2", "Hello")],
            )
        ),
        found=(Found("item ids", (14, 16), Level.INFO),),
        not_exercised=past().read(OTHER),
    ),
]
