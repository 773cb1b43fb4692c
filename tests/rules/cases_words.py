"""Cases of the rules that listed values and methods of the specification are accepted."""

from harness.judge.verdict import Level
from tests.rules.case import Case, Found, opened
from tests.rules.traces import THREAD, Talk, settings, thread_object

UNKNOWN = "unknown method"


def turn_with(talk: Talk, turn: str, **more: str) -> Talk:
    """A whole turn: six messages."""
    talk.ask_turn(**more).reply_turn(turn)
    return talk.status("active").turn_started(turn).end_turn(turn)


def refused_with(talk: Talk, **more: str) -> Talk:
    """A turn/start that is refused: two messages."""
    return talk.ask_turn(**more).refuses()


def thread_with(talk: Talk, thread: str, **more: str) -> Talk:
    """A thread/start that is taken: two messages."""
    return talk.asks("thread/start", **more).answers(
        {"thread": thread_object(thread), **settings()}
    )


def waiting() -> Talk:
    """A word that is refused while a turn runs, and one while another request waits."""
    talk = refused_with(turn_with(opened(), "turn_1").start_turn("turn_2"), effort="low")
    talk.end_turn("turn_2").asks("thread/read", threadId="thr_9")
    talk.asks("thread/start", approvalPolicy="never").refuses().refuses(to=4)
    return talk.asks("thread/start", approvalPolicy="always").refuses()


CASES = [
    Case(
        rule="word.taken",
        good=turn_with(turn_with(opened(), "turn_1", effort="high"), "turn_2", summary="verbose"),
        witnesses=("turn/start with effort high", "turn/start with summary verbose"),
        bad=turn_with(
            refused_with(turn_with(opened(), "turn_1"), approvalPolicy="reject"), "turn_2"
        )
        .asks("turn/start", threadId=THREAD, input=[{"type": "text", "text": "x"}], effort="low")
        .refuses()
        .asks("thread/list", sortKey="updated_at")
        .refuses()
        .asks("thread/list")
        .answers({"data": [], "nextCursor": None}),
        found=(
            Found("turn/start with approvalPolicy reject", (9, 10)),
            Found("thread/list with sortKey updated_at", (19, 20)),
            Found("turn/start with effort low", (17, 18), Level.SHOULD),
        ),
        not_exercised=waiting(),
    ),
    Case(
        rule="method.offered",
        good=opened(),
        witnesses=("method thread/start",),
        bad=opened()
        .asks("thread/read", threadId=THREAD)
        .refuses(UNKNOWN)
        .asks("thread/fork", threadId=THREAD)
        .answers({"thread": thread_object("thr_2")})
        .asks("thread/rollback", threadId=THREAD)
        .refuses("unknown variant `thread/rollback`"),
        found=(
            Found("request thread/read id 2", (3, 4)),
            Found("request thread/rollback id 4", (7, 8), Level.SHOULD),
        ),
        # Not offered, not of the text, refused for another reason, under development.
        not_exercised=Talk()
        .asks("thread/list")
        .refuses(UNKNOWN)
        .asks("initialize")
        .refuses(UNKNOWN)
        .asks("thread/read", threadId="thr_9")
        .refuses("no such thread")
        .asks("skills/remote/list")
        .refuses(UNKNOWN),
    ),
]
