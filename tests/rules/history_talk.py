"""Builder of conversations in which threads are resumed, forked, unloaded and rolled back."""

from typing import Any, Self

from tests.rules.traces import THREAD, TURN, Talk, settings, stored_plain_turn, thread_object

FORK = "thr_2"


class Past(Talk):
    """A talk with requests about stored threads; their results have the given turns."""

    def leaves(self, thread: str = THREAD) -> Self:
        """Add the unsubscription of the only client, which unloads the thread."""
        self.asks("thread/unsubscribe", threadId=thread).answers({"status": "unsubscribed"})
        self.status("notLoaded", thread)
        return self.tells("thread/closed", threadId=thread)

    def resumes(self, *turns: dict[str, Any], thread: str = THREAD, **shown: Any) -> Self:
        """Add thread/resume and its result."""
        self.asks("thread/resume", threadId=thread)
        return self.shows(*turns, thread=thread, **shown)

    def shows(self, *turns: dict[str, Any], thread: str = THREAD, **shown: Any) -> Self:
        """Add the result of thread/resume."""
        shown = {"preview": self._said.get(THREAD, ""), **shown}
        return self.answers(
            {"thread": thread_object(thread, turns=list(turns), **shown), **settings()}
        )

    def forks(self, *turns: dict[str, Any], fork: str = FORK, **shown: Any) -> Self:
        """Add thread/fork and its result, without thread/started."""
        self.asks("thread/fork", threadId=THREAD)
        shown = {"preview": self._said.get(THREAD, ""), **shown}
        return self.answers({"thread": thread_object(fork, turns=list(turns), **shown)})

    def announced(self, thread: str = FORK) -> Self:
        """Add thread/started."""
        return self.tells("thread/started", thread=thread_object(thread))

    def rolls_back(self, *turns: dict[str, Any], number: int = 1) -> Self:
        """Add thread/rollback by `number` turns, and its result."""
        self.asks("thread/rollback", threadId=THREAD, numTurns=number)
        shown: dict[str, Any] = {"preview": self._said.get(THREAD, ""), "turns": list(turns)}
        return self.answers({"thread": thread_object(**shown)})

    def loads(self, *threads: str, **more: Any) -> Self:
        """Add thread/loaded/list and its result."""
        self.asks("thread/loaded/list")
        return self.answers({"data": list(threads), "nextCursor": None, **more})


def past(*turns: str) -> Past:
    """Return a talk with a thread with these plain turns; with one turn, seqs 0 to 14."""
    talk = Past().start_thread()
    for turn in turns or (TURN,):
        talk.plain_turn(turn)
    return talk


def stored(*turns: str) -> list[dict[str, Any]]:
    """Return these plain turns as a server shows them."""
    return [stored_plain_turn(turn) for turn in turns or (TURN,)]
