"""Edge cases of params of turn/start that last, and of skills, after cut-off and dropped turns."""

from typing import Any, Self

from harness.judge.verdict import Level
from harness.trace.marks import Closed, ServerEnded
from tests.rules.edge import Illegal, Legal
from tests.rules.history_talk import FORK, Past
from tests.rules.skill_talk import (
    entry,
    invokes,
    lists,
    placed,
    puts,
    skill_item,
)
from tests.rules.traces import (
    THREAD,
    TROUBLE,
    Talk,
    command,
    thread_object,
    turn_object,
    user_message,
)

MODEL, FOLDER, HOME = "model.named", "turn.cwd-applies", "thread.cwd-used"
SCHEMA_RULE, SKILL = "model.schema-this-turn", "skills.invoked"
SCHEMA = {"type": "object"}
TOLD = "To do tidy, do it slowly."
PROJECT, ELSEWHERE = "/home/user/project", "/srv/w/other"


class Work(Past):
    """A talk whose turns call the model once, and run one command."""

    _turns = 0
    _stored: tuple[dict[str, Any], ...] = ()

    def works(
        self,
        called: str = "mock-model",
        folder: str = PROJECT,
        *,
        status: str = "completed",
        thread: str = THREAD,
        schema: bool = False,
        is_called: bool = True,
        **params: Any,
    ) -> Self:
        """Add a turn that calls this model, and runs a command in this folder."""
        self._turns += 1
        number, turn, words = self._turns, f"turn_{self._turns}", f"say number {self._turns}"
        self.ask_turn(thread, words, **params).reply_turn(turn).status("active", thread)
        items = [user_message(f"u-{number}", words)]
        self.turn_started(turn, thread).item(items[0], turn, thread)
        if is_called:
            self.calls(words, model=called, call=number, schema=schema).ends(number)
            items.append(command(f"c-{number}", "completed", cwd=folder, exitCode=0))
            self.item(items[1], turn, thread)
        if status == "interrupted":
            self.interrupt(turn, thread).answers({})
        error = TROUBLE if status == "failed" else None
        if thread == THREAD:
            self._stored += (turn_object(turn, status, items=items, error=error),)
        return self.end_turn(turn, thread, status, error)

    def drops(self, number: int = 1) -> Self:
        """Add a rollback by this number of turns."""
        self._stored = self._stored[:-number]
        return self.rolls_back(*self._stored, number=number)

    def restarts(self) -> Self:
        """Add a restart of the server, and a resume."""
        self.mark(ServerEnded(killed=False)).mark(Closed("c1"))
        return self.on("c2").resumes(*self._stored)

    def compacts(self) -> Self:
        """Add a compaction at the client's request."""
        self.asks("thread/compact/start", threadId=THREAD).answers({})
        self.status("active").turn_started("turn_c")
        return self.item({"type": "contextCompaction", "id": "c"}, "turn_c").end_turn("turn_c")

    def copies(self) -> Self:
        """Add a fork."""
        return self.forks(*self._stored).announced()


def opened() -> Work:
    """Return a talk with a thread with a turn of the default model."""
    return Work().start_thread().works()


def moved(status: str = "completed") -> Work:
    """Return a talk whose second turn names a model and a folder, and ends so."""
    return opened().works("other", ELSEWHERE, status=status, model="other", cwd=ELSEWHERE)


def named(status: str = "completed") -> Work:
    """Return a talk whose second turn names a model, and ends so."""
    return opened().works("other", status=status, model="other")


def bound(status: str = "interrupted") -> Work:
    """Return a talk whose second turn has an output schema, and ends so."""
    return opened().works(status=status, schema=True, outputSchema=SCHEMA)


def invoked_again(*held: str, dropped: bool = True) -> Talk:
    """A skill is invoked, perhaps dropped, and invoked again; the call then has these lines."""
    talk = lists(puts(placed(), "tidy").start_thread(), entry("tidy"))
    invokes(talk, "do the first $tidy", skill_item("tidy"), held=(TOLD,))
    if dropped:
        talk.asks("thread/rollback", threadId=THREAD, numTurns=1)
        talk.answers({"thread": thread_object(turns=[])})
    return invokes(talk, "do the second $tidy", skill_item("tidy"), held=held, number=2)


LEGAL: list[Legal] = [
    Legal(
        MODEL,
        "kept-after-an-interrupt",
        lambda: moved("interrupted").works("other", ELSEWHERE),
    ),
    Legal(
        MODEL,
        "other-thread-keeps-its-own",
        lambda: named().start_thread("thr_9").works(thread="thr_9").works("other"),
    ),
    Legal(MODEL, "another-after-a-restart", lambda: moved("interrupted").restarts().works()),
    Legal(MODEL, "dropped-with-its-turn", lambda: named().drops().works()),
    Legal(
        MODEL,
        "named-in-vain-and-kept",
        lambda: named().ask_turn(text="in vain", model="third").refuses().works("third"),
    ),
    Legal(FOLDER, "kept-after-a-failure", lambda: moved("failed").works("other", ELSEWHERE)),
    Legal(FOLDER, "another-after-a-restart", lambda: moved("failed").restarts().works()),
    Legal(HOME, "of-a-fork", lambda: moved("failed").copies().works(thread=FORK)),
    Legal(SCHEMA_RULE, "gone-after-an-interrupt", lambda: bound().works()),
    Legal(
        SCHEMA_RULE,
        "another-of-its-own",
        lambda: bound().works(schema=True, outputSchema=SCHEMA),
    ),
    Legal(SKILL, "told-in-the-history", lambda: invoked_again(TOLD, dropped=False)),
    Legal(SKILL, "told-anew-after-a-rollback", lambda: invoked_again(TOLD)),
]

ILLEGAL: list[Illegal] = [
    Illegal(
        MODEL,
        "lost-with-an-interrupted-turn",
        lambda: moved("interrupted").works(folder=ELSEWHERE),
    ),
    Illegal(MODEL, "lost-with-a-failed-turn", lambda: moved("failed").works(folder=ELSEWHERE)),
    Illegal(
        MODEL,
        "lost-with-a-turn-without-a-call",
        lambda: opened().works(is_called=False, status="interrupted", model="other").works(),
    ),
    Illegal(MODEL, "lost-beside-another-thread", lambda: named().start_thread("thr_9").works()),
    Illegal(MODEL, "lost-after-a-compaction", lambda: named().compacts().works()),
    Illegal(MODEL, "lost-with-the-turn-after-it", lambda: named().works("other").drops().works()),
    Illegal(FOLDER, "lost-with-an-interrupted-turn", lambda: moved("interrupted").works("other")),
    Illegal(
        FOLDER,
        "lost-beside-another-thread",
        lambda: moved().start_thread("thr_9").works(thread="thr_9").works("other"),
    ),
    Illegal(
        HOME,
        "that-of-another-thread",
        lambda: moved().start_thread("thr_9").works(folder=ELSEWHERE, thread="thr_9"),
    ),
    Illegal(SCHEMA_RULE, "kept-after-an-interrupt", lambda: bound().works(schema=True)),
    Illegal(
        SCHEMA_RULE,
        "kept-in-another-thread",
        lambda: bound("completed").start_thread("thr_9").works(schema=True, thread="thr_9"),
    ),
    Illegal(SKILL, "not-told-after-a-rollback", invoked_again, Level.SHOULD),
    Illegal(SKILL, "not-told-again", lambda: invoked_again(dropped=False), Level.SHOULD),
]
