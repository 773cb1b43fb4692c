"""Cases of the rules on threads that are resumed and forked."""

from harness.judge.verdict import Level
from tests.rules.case import Case, Found, silent
from tests.rules.history_talk import FORK, Past, past, stored
from tests.rules.traces import THREAD, TURN, Talk, agent_message, turn_object, user_message

SUBJECT, COPY = "thread thr_1", "thread thr_2"
OTHER = turn_object(
    status="completed", items=[user_message("u", "hello"), agent_message("m", "Hell")]
)
EMPTY = turn_object(status="completed")


def _strange() -> Past:
    """A thread that no message showed before is resumed, and forked."""
    talk = Past().resumes(OTHER)
    talk.forks(*stored()).announced()
    return talk


CASES = [
    Case(
        rule="resume.reopens",
        good=past().leaves().resumes(*stored()),
        witnesses=(SUBJECT,),
        # plain_turn ends at 14; leaves: 15 to 18; thread/resume 19.
        bad=past().leaves().asks("thread/resume", threadId=THREAD).refuses(),
        found=(Found(SUBJECT, (14, 20)),),
        idle=_strange().asks("thread/resume", threadId="thr_9").refuses(),
    ),
    Case(
        rule="resume.same-thread",
        good=_strange(),
        witnesses=(SUBJECT,),
        bad=Past().asks("thread/resume", threadId=THREAD).shows(thread="thr_9"),
        found=(Found(SUBJECT, (0, 1)),),
        idle=past().asks("thread/resume", threadId=THREAD).refuses(),
    ),
    Case(
        rule="resume.not-announced",
        good=past().leaves().resumes(*stored()),
        witnesses=(SUBJECT,),
        # leaves: 15 to 18; thread/resume 19.
        bad=past().leaves().resumes(*stored()).announced(THREAD),
        found=(Found(SUBJECT, (19, 21), Level.SHOULD),),
        idle=_strange().announced(THREAD),
    ),
    Case(
        rule="thread.history-shown",
        good=past().resumes(*stored()).forks(*stored()).announced(),
        witnesses=(SUBJECT, COPY),
        bad=past().resumes().forks().announced(),
        found=(Found(SUBJECT, (14, 16), Level.SHOULD), Found(COPY, (14, 18), Level.SHOULD)),
        idle=Past().start_thread().resumes().forks().announced().resumes(thread="thr_9"),
    ),
    Case(
        rule="turn.items-filled",
        good=past().resumes(*stored()).forks(*stored("turn_8")).announced(),
        witnesses=("turn turn_1", "turn turn_8"),
        bad=past().resumes(EMPTY).forks(turn_object("turn_8", "completed")).announced(),
        # The first item/completed of a plain turn is 8.
        found=(Found("turn turn_1", (8, 16)), Found("turn turn_8", (8, 18))),
        idle=Past().start_thread().start_turn().resumes(turn_object()),
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
        idle=_strange(),
    ),
    Case(
        rule="fork.new-id",
        good=_strange(),
        witnesses=(COPY,),
        bad=Past().forks(fork=THREAD),
        found=(Found(SUBJECT, (0, 1)),),
        idle=silent(),
    ),
    Case(
        rule="fork.announced",
        good=_strange(),
        witnesses=(COPY,),
        bad=Past().forks().announced().announced().forks(fork="thr_3"),
        found=(Found(COPY, (2, 3)), Found("thread thr_3", (5,))),
        idle=Talk().start_thread(FORK),
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
        idle=_strange(),
    ),
]
