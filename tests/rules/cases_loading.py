"""Cases of the rules on names, thread/unsubscribe, and thread/loaded/list."""

from typing import Any

from harness.judge.verdict import Level
from tests.rules.case import Case, Found, opened
from tests.rules.traces import THREAD, Talk, settings, thread_object

NAMED, RENAMED = "request thread/name/set id 2", "request thread/name/set id 3"
LEFT = "request thread/unsubscribe id 2"
THE_THREAD = f"thread {THREAD}"


def names(talk: Talk, name: str, result: Any = None, *, told: bool = True) -> Talk:
    """thread/name/set, its answer, and what is told of it."""
    talk.asks("thread/name/set", threadId=THREAD, name=name)
    talk.answers({} if result is None else result)
    return talk.tells("thread/name/updated", threadId=THREAD, threadName=name) if told else talk


def shows(talk: Talk, name: str | None) -> Talk:
    """thread/read, which shows a name."""
    return talk.asks("thread/read", threadId=THREAD).answers({"thread": thread_object(name=name)})


def leaves(talk: Talk, word: str = "unsubscribed", *, closed: bool = False) -> Talk:
    """thread/unsubscribe, its answer, and thread/closed."""
    talk.asks("thread/unsubscribe", threadId=THREAD).answers({"status": word})
    return talk.tells("thread/closed", threadId=THREAD) if closed else talk


def loaded(talk: Talk, *threads: str) -> Talk:
    """thread/loaded/list, of one page."""
    return talk.asks("thread/loaded/list").answers({"data": list(threads), "nextCursor": None})


def followed_by_two(talk: Talk | None = None, *turns: dict[str, Any]) -> Talk:
    """Two clients that follow a thread: seqs 0 to 4, the second one is the last to speak."""
    talk = (talk or opened()).on("c2").asks("thread/resume", threadId=THREAD)
    shown: dict[str, Any] = {"turns": list(turns), "preview": "hello"} if turns else {}
    return talk.answers({"thread": thread_object(**shown), **settings()})


CASES = [
    Case(
        rule="name.reply-empty",
        good=names(opened(), "one"),
        witnesses=(NAMED,),
        bad=names(names(opened(), "one", result=[]), "two", {"name": "two"}),
        found=(Found(NAMED, (3, 4)), Found(RENAMED, (6, 7), Level.INFO)),
        not_exercised=opened().asks("thread/name/set", threadId=THREAD, name="one").refuses(),
    ),
    Case(
        rule="name.told",
        # The payload is not shown.
        good=names(names(opened(), "one", told=False).tells("thread/name/updated"), "two"),
        witnesses=(NAMED, RENAMED),
        bad=names(names(opened(), "one"), "two", told=False),
        found=(Found(RENAMED, (6, 7)),),
        # A name that is empty may be none.
        not_exercised=names(opened(), " ", told=False),
    ),
    Case(
        rule="name.shown",
        good=shows(names(names(opened(), "one"), " two  words "), "two words"),
        witnesses=(THE_THREAD,),
        bad=shows(names(names(opened(), "one"), "two"), "one"),
        found=(Found(THE_THREAD, (6, 10), Level.SHOULD),),
        not_exercised=shows(shows(names(opened(), "one"), None).start_turn(), ""),
    ),
    Case(
        rule="loading.closed-told",
        good=leaves(opened(), closed=True),
        witnesses=(LEFT,),
        bad=leaves(opened()).tells("thread/closed", threadId="thr_2"),
        found=(Found(LEFT, (3, 4)),),
        not_exercised=leaves(leaves(opened(), "notSubscribed"), "notLoaded"),
    ),
    Case(
        rule="loading.kept-for-others",
        good=leaves(followed_by_two()),
        witnesses=(THE_THREAD,),
        bad=leaves(followed_by_two(), closed=True),
        found=(Found(THE_THREAD, (7,)),),
        not_exercised=leaves(opened(), closed=True),
    ),
    Case(
        rule="unsubscribe.words",
        good=leaves(leaves(opened(), closed=True), "notLoaded"),
        witnesses=(LEFT, "request thread/unsubscribe id 3"),
        bad=leaves(leaves(opened(), "notLoaded"), closed=False),
        found=(
            Found(LEFT, (3, 4), Level.SHOULD),
            Found("request thread/unsubscribe id 3", (5, 6), Level.SHOULD),
        ),
        not_exercised=opened()
        .asks("thread/unsubscribe", threadId="thr_9")
        .answers({"status": "notLoaded"}),
    ),
    Case(
        rule="loaded.lists-loaded",
        good=loaded(leaves(loaded(opened(), THREAD), closed=True)),
        witnesses=(THE_THREAD,),
        bad=loaded(leaves(loaded(opened(), "thr_9"), closed=True), "thr_9", THREAD),
        found=(Found(THE_THREAD, (3, 4)), Found(THE_THREAD, (7, 8, 9))),
        not_exercised=loaded(Talk(), "thr_9"),
    ),
]
