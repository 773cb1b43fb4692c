"""Edge cases of thread/unsubscribe, of names, and of thread/loaded/list."""

from typing import Any

from harness.judge.verdict import Level
from harness.trace.marks import Closed, StepBegins
from tests.rules.case import opened
from tests.rules.cases_loading import followed_by_two, leaves, loaded, names, shows
from tests.rules.edge import Illegal, Legal
from tests.rules.edges_adversary import Two
from tests.rules.traces import THREAD, Talk, settings, thread_object

CLOSED, KEPT, WORDS = "loading.closed-told", "loading.kept-for-others", "unsubscribe.words"
NAMED, SHOWN, LISTED = "name.told", "name.shown", "loaded.lists-loaded"


def closed_before_the_answer(payload: dict[str, Any]) -> Talk:
    """thread/closed comes first, in a form of its own."""
    talk = opened().asks("thread/unsubscribe", threadId=THREAD).tells("thread/closed", **payload)
    return loaded(talk.answers({"status": "unsubscribed"}))


def left_in_a_turn() -> Talk:
    """The thread is left while a turn runs, which goes on untold; the thread stays until then."""
    return leaves(opened().start_turn())


def left_and_opened_again() -> Talk:
    """The client comes back before the thread was unloaded."""
    talk = leaves(opened()).asks("thread/resume", threadId=THREAD)
    return talk.answers({"thread": thread_object(), **settings()})


def left_beside_a_stranger() -> Talk:
    """Another client is connected, and a subscriber of everything unasked."""
    talk = opened().on("c2").asks("thread/list").answers({"data": [], "nextCursor": None})
    return leaves(talk.on("c1"))


def left_after_the_other_was_gone() -> Talk:
    """The other client was disconnected; that it is no subscriber any more is nowhere said."""
    return leaves(followed_by_two().mark(Closed("c2")).on("c1"))


def left_by_both(*connections: str) -> Talk:
    """Both leave; the closing is told to some."""
    talk = leaves(leaves(followed_by_two()).on("c1"))
    for connection in connections:
        talk.on(connection).tells("thread/closed", threadId=THREAD)
    return talk


def closed_for_the_archive() -> Talk:
    """A thread that is archived is unloaded, whoever follows it."""
    talk = opened().asks("thread/archive", threadId=THREAD).answers({})
    talk.tells("thread/archived", threadId=THREAD).tells("thread/closed", threadId=THREAD)
    return loaded(talk)


def closed_and_opened_by_another() -> Talk:
    """The first client leaves, and is told so when the second one has opened the thread."""
    talk = leaves(opened()).on("c2").asks("thread/resume", threadId=THREAD)
    talk.answers({"thread": thread_object(), **settings()})
    return talk.on("c1").tells("thread/closed", threadId=THREAD)


def another_one_closed() -> Talk:
    """A thread that nobody here knows is closed."""
    return followed_by_two().tells("thread/closed", threadId="thr_77")


def closed_without_a_name() -> Talk:
    """thread/closed names no thread: it can be about one of another client."""
    return followed_by_two().tells("thread/closed")


def second_word(word: str) -> Talk:
    """The only client leaves a second time."""
    return leaves(leaves(opened(), closed=True), word)


def second_word_of_two(word: str) -> Talk:
    """One of two clients leaves a second time."""
    return leaves(leaves(followed_by_two()), word)


def stranger_leaves(word: str) -> Talk:
    """A client that opened nothing leaves."""
    talk = opened().on("c2").asks("thread/list").answers({"data": [], "nextCursor": None})
    return leaves(talk, word)


def left_after_a_turn_of_its_own() -> Talk:
    """A turn/start of an unsubscribed client may make it a subscriber again."""
    talk = leaves(followed_by_two()).ask_turn().refuses("resume it first")
    return leaves(talk, "unsubscribed")


def left_after_a_restart() -> Talk:
    """Another process knows of no subscriber."""
    talk = opened().mark(StepBegins("restart", 3)).mark(Closed("c1")).on("c2")
    return leaves(talk, "notLoaded")


def pages(*threads: str, cursor: str = "2") -> Talk:
    """A list of loaded threads in pages of one."""
    talk = opened().asks("thread/start")
    talk.answers({"thread": thread_object("thr_2"), **settings()})
    talk.tells("thread/started", thread=thread_object("thr_2"))
    params: dict[str, Any] = {"limit": 1}
    for at, thread in enumerate(threads):
        more = cursor if at + 1 < len(threads) else None
        talk.asks("thread/loaded/list", **params).answers({"data": [thread], "nextCursor": more})
        params["cursor"] = more
    return talk


def listed_while_it_is_left() -> Talk:
    """The list and the leaving are asked for together."""
    talk = opened().asks("thread/loaded/list").asks("thread/unsubscribe", threadId=THREAD)
    talk.answers({"status": "unsubscribed"}).tells("thread/closed", threadId=THREAD)
    return talk.answers({"data": [], "nextCursor": None}, to=2)


def listed_after_it_was_opened_again() -> Talk:
    """Closed, and loaded once more by a turn."""
    talk = leaves(opened(), closed=True).ask_turn().refuses("it is being loaded")
    return loaded(talk, THREAD)


def same_name_twice() -> Talk:
    """A name that does not change need not be reported."""
    return names(names(opened(), "one"), " One ", told=False)


def name_of_another_client() -> Talk:
    """Each client is told of its own naming only."""
    talk: Any = Two().start_thread()
    names(talk, "one").on("c2")
    return names(talk, "two")


def name_cut() -> Talk:
    """A long name is kept in part."""
    return shows(names(opened(), "long " * 400), "long " * 20)


def two_names_at_once(shown: str) -> Talk:
    """Two names are sent at once: which one was last nobody knows."""
    talk = opened().asks("thread/name/set", threadId=THREAD, name="one")
    talk.asks("thread/name/set", threadId=THREAD, name="two").answers({}).answers({}, to=2)
    talk.tells("thread/name/updated").tells("thread/name/updated")
    return shows(talk, shown)


def name_of_some_answers() -> Talk:
    """The name is in the list alone."""
    talk = names(opened(), "one").asks("thread/list")
    talk.answers({"data": [thread_object(name="one")], "nextCursor": None})
    return shows(talk, None)


def name_gone(*, restarted: bool) -> Talk:
    """The name is shown, and then no more."""
    talk = shows(names(opened(), "one"), "one")
    if restarted:
        talk.mark(StepBegins("restart", 5)).mark(Closed("c1")).on("c2")
    talk.asks("thread/read", threadId=THREAD)
    return talk.answers({"thread": thread_object(name=None, status={"type": "notLoaded"})})


def named_and_left_at_once() -> Talk:
    """A server that tells followers has nobody to tell any more."""
    return leaves(names(opened(), "a", told=False), closed=True)


def named_by_a_client_that_is_gone_at_once() -> Talk:
    talk = names(opened(), "a", told=False).mark(Closed("c1")).on("c2")
    return talk.asks("thread/list").answers({"data": [], "nextCursor": None})


def named_and_left_later() -> Talk:
    return leaves(loaded(names(opened(), "a", told=False), THREAD), closed=True)


LEGAL: list[Legal] = [
    Legal(CLOSED, "before-the-answer", lambda: closed_before_the_answer({"threadId": THREAD})),
    Legal(CLOSED, "in-a-list", lambda: closed_before_the_answer({"gone": [THREAD]})),
    Legal(CLOSED, "left-in-a-turn", left_in_a_turn),
    Legal(CLOSED, "opened-again", left_and_opened_again),
    Legal(CLOSED, "beside-a-stranger", left_beside_a_stranger, frozenset({CLOSED})),
    Legal(CLOSED, "other-was-disconnected", left_after_the_other_was_gone),
    Legal(CLOSED, "both-left-and-the-first-is-told", lambda: left_by_both("c1")),
    Legal(CLOSED, "both-left-and-both-are-told", lambda: left_by_both("c2", "c1")),
    Legal(KEPT, "closed-for-the-archive", closed_for_the_archive),
    Legal(KEPT, "opened-by-another-meanwhile", closed_and_opened_by_another),
    Legal(KEPT, "another-one-closed", another_one_closed),
    Legal(KEPT, "closed-without-a-name", closed_without_a_name),
    Legal(WORDS, "second-time-not-subscribed", lambda: second_word("notSubscribed")),
    Legal(WORDS, "second-time-not-loaded", lambda: second_word("notLoaded")),
    Legal(WORDS, "stranger-subscribed-unasked", lambda: stranger_leaves("unsubscribed")),
    Legal(WORDS, "stranger-not-subscribed", lambda: stranger_leaves("notSubscribed")),
    Legal(WORDS, "after-a-turn-of-its-own", left_after_a_turn_of_its_own),
    Legal(WORDS, "after-a-restart", left_after_a_restart),
    Legal(LISTED, "in-pages", lambda: pages("thr_2", THREAD)),
    Legal(LISTED, "left-meanwhile", listed_while_it_is_left),
    Legal(LISTED, "opened-again", listed_after_it_was_opened_again),
    Legal(NAMED, "same-name-twice", same_name_twice),
    Legal(NAMED, "left-at-once", named_and_left_at_once),
    Legal(NAMED, "gone-at-once", named_by_a_client_that_is_gone_at_once),
    Legal(NAMED, "each-told-of-its-own", name_of_another_client),
    Legal(SHOWN, "cut", name_cut),
    Legal(SHOWN, "in-some-answers", name_of_some_answers),
    Legal(SHOWN, "first-of-two-at-once", lambda: two_names_at_once("one")),
    Legal(SHOWN, "second-of-two-at-once", lambda: two_names_at_once("two")),
]

ILLEGAL: list[Illegal] = [
    Illegal(CLOSED, "both-left", left_by_both),
    Illegal(CLOSED, "left", lambda: leaves(opened().plain_turn())),
    Illegal(KEPT, "closed-for-both", lambda: leaves(followed_by_two(), closed=True)),
    Illegal(
        KEPT,
        "closed-for-nothing",
        lambda: opened().tells("thread/closed", gone=[THREAD]),
    ),
    Illegal(
        WORDS,
        "second-time-of-two-not-loaded",
        lambda: second_word_of_two("notLoaded"),
        Level.SHOULD,
    ),
    Illegal(WORDS, "second-time-unsubscribed", lambda: second_word("unsubscribed"), Level.SHOULD),
    Illegal(LISTED, "lost-between-pages", lambda: pages("thr_2", "thr_2")),
    Illegal(LISTED, "dropped-for-the-other", lambda: loaded(leaves(followed_by_two()).on("c1"))),
    Illegal(NAMED, "changed-in-silence", lambda: names(names(opened(), "a"), "b", told=False)),
    Illegal(NAMED, "left-later", named_and_left_later),
    Illegal(NAMED, "first-name-in-silence", lambda: names(opened(), "a", told=False)),
    Illegal(SHOWN, "former", lambda: shows(names(names(opened(), "a"), "b"), "a"), Level.SHOULD),
    Illegal(SHOWN, "gone", lambda: name_gone(restarted=False), Level.SHOULD),
    Illegal(SHOWN, "gone-after-a-restart", lambda: name_gone(restarted=True), Level.SHOULD),
    Illegal(SHOWN, "another", lambda: shows(names(opened(), "a"), "b"), Level.SHOULD),
]
