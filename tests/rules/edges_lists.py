"""Edge cases of pages of thread/list: threads that change while they are listed."""

from typing import Any

from tests.rules.edge import Illegal, Legal
from tests.rules.good_lists import archives
from tests.rules.list_talk import answered, begin, listed, page, start
from tests.rules.traces import Talk, settings, stored_plain_turn

COMPLETE, ONCE, SIZE = "list.complete", "list.once", "list.page-size"

ALL = (listed(3), listed(2), listed(1))
FORK = listed(4)
COPIED = [stored_plain_turn()]


def three() -> Talk:
    """Three threads, each with a turn."""
    return begin(Talk(), 1, 2, 3)


def first_page(talk: Talk, *threads: dict[str, Any], **params: Any) -> Talk:
    """The first page of two threads."""
    return page(talk, *threads, then="more", limit=2, **params)


def second_page(talk: Talk, *threads: dict[str, Any], **params: Any) -> Talk:
    """The page after it, the last one."""
    return page(talk, *threads, limit=2, cursor="more", **params)


def added_between() -> Talk:
    """A thread is added between two pages, and stands on none of them."""
    return second_page(begin(first_page(three(), listed(3), listed(2)), 4), listed(1))


def touched_between() -> Talk:
    """A thread takes a turn between two pages: it comes first now, and is on none of them."""
    talk = first_page(three(), listed(3), listed(2), sortKey="updated_at")
    talk.plain_turn("turn_4", "thr_1")
    return second_page(talk, sortKey="updated_at")


def touched_and_told_twice() -> Talk:
    """A thread takes a turn between two pages, and is on both."""
    talk = first_page(three(), listed(1), listed(2), sortKey="updated_at")
    talk.plain_turn("turn_4", "thr_1")
    return second_page(talk, listed(3), listed(1, updatedAt=1_800_000_000), sortKey="updated_at")


def archived_between(*threads: dict[str, Any]) -> Talk:
    """A thread is archived between two pages."""
    return second_page(archives(first_page(three(), listed(3), listed(2)), "thr_1"), *threads)


def archived_while_listed(*threads: dict[str, Any]) -> Talk:
    """A list is asked for before a thread/archive is answered."""
    talk = three().asks("thread/archive", threadId="thr_1").asks("thread/list")
    talk.answers({}, to=7).tells("thread/archived", threadId="thr_1")
    return answered(talk, *threads, to=8)


def archived_by_another(*threads: dict[str, Any]) -> Talk:
    """Another client archives a thread while this one lists the threads."""
    talk = three().asks("thread/list")
    talk.on("c2").asks("thread/archive", threadId="thr_1").on("c1")
    answered(talk, *threads, to=7)
    return talk.on("c2").answers({}, to=8).tells("thread/archived", threadId="thr_1")


def running_while_listed() -> Talk:
    """A thread that runs is listed on two pages, and another one on none."""
    talk = three().start_turn("turn_4", "thr_1")
    first_page(talk, listed(1), listed(3), sortKey="updated_at")
    second_page(talk, listed(1), listed(2), sortKey="updated_at")
    return talk.end_turn("turn_4", "thr_1")


def without_a_turn() -> Talk:
    """A thread that has no turn yet is not stored, so it is not listed."""
    return page(start(three(), 4), listed(3), listed(2), listed(1))


def ephemeral() -> Talk:
    """An ephemeral thread is not listed."""
    talk = three().asks("thread/start", ephemeral=True)
    shown = listed(4, ephemeral=True, path=None, status={"type": "idle"}, preview="")
    talk.answers({"thread": shown, **settings()}).tells("thread/started", thread=shown)
    talk.plain_turn("turn_4", "thr_4")
    return page(talk, listed(3), listed(2), listed(1))


def empty_page_at_the_end() -> Talk:
    """A full page has a cursor, and what follows is empty."""
    talk = page(three(), listed(3), listed(2), listed(1), then="more", limit=3)
    return page(talk, limit=3, cursor="more")


def another_query_between() -> Talk:
    """A cursor is used with other params: what then comes is not said."""
    talk = first_page(three(), listed(3), listed(2))
    return page(talk, listed(3), cursor="more", limit=2, searchTerm="hello")


def short_pages() -> Talk:
    """A server gives no more than one thread on a page, whatever the limit."""
    return second_page(
        page(
            page(three(), listed(3), then="one", limit=2),
            listed(2),
            then="more",
            limit=2,
            cursor="one",
        ),
        listed(1),
    )


def none_for_zero() -> Talk:
    """A limit of 0 gives one thread."""
    return page(three(), listed(3), then="more", limit=0)


def lost_between(between: bool) -> Talk:
    """A thread is added between two pages, or none is, and an older one is lost."""
    talk = first_page(three(), listed(3), listed(2))
    return second_page(begin(talk, 4) if between else talk)


def archived_without_a_trace() -> Talk:
    """A thread that was archived is in no list."""
    return page(archives(three(), "thr_1"), archived=True)


def twice_after_an_addition() -> Talk:
    """A thread is added between two pages, so that another one moves to the next page."""
    talk = begin(first_page(three(), listed(3), listed(2)), 4)
    return second_page(talk, listed(2), listed(1))


def forks(talk: Talk, number: int, of: int = 1) -> Talk:
    """thread/fork, its answer, thread/started."""
    shown = listed(number, status={"type": "idle"})
    talk.asks("thread/fork", threadId=f"thr_{of}").answers({"thread": {**shown, "turns": COPIED}})
    return talk.tells("thread/started", thread=shown)


def forked(*threads: dict[str, Any], turn: bool = False, **asked: Any) -> Talk:
    """A thread is forked, perhaps has a turn of its own, and the threads are listed."""
    talk = forks(three(), 4)
    return page(talk.plain_turn("turn_4", "thr_4") if turn else talk, *threads, **asked)


def fork_of_the_archive(*threads: dict[str, Any]) -> Talk:
    """A thread in the archive is forked: whether the fork is in the archive is not said."""
    talk = forks(archives(three(), "thr_1"), 4).plain_turn("turn_4", "thr_4")
    return page(talk, *threads)


LEGAL: list[Legal] = [
    Legal(COMPLETE, "fork-without-a-turn", lambda: forked(*ALL)),
    Legal(COMPLETE, "fork-found-by-its-source", lambda: forked(FORK, *ALL, searchTerm="hel")),
    Legal(COMPLETE, "fork-of-the-archive", lambda: fork_of_the_archive(*ALL[:2])),
    Legal(COMPLETE, "fork-of-the-archive-listed", lambda: fork_of_the_archive(FORK, *ALL[:2])),
    Legal(COMPLETE, "thread-added-between-pages", added_between),
    Legal(COMPLETE, "thread-touched-between-pages", touched_between),
    Legal(COMPLETE, "thread-archived-between-pages", archived_between),
    Legal(
        COMPLETE, "thread-archived-between-pages-and-listed", lambda: archived_between(listed(1))
    ),
    Legal(
        COMPLETE,
        "archived-while-listed-and-gone",
        lambda: archived_while_listed(listed(3), listed(2)),
    ),
    Legal(
        COMPLETE,
        "archived-while-listed-and-there",
        lambda: archived_while_listed(listed(3), listed(2), listed(1)),
    ),
    Legal(
        COMPLETE,
        "archived-by-another-while-listed",
        lambda: archived_by_another(listed(3), listed(2)),
    ),
    Legal(COMPLETE, "thread-without-a-turn", without_a_turn),
    Legal(COMPLETE, "ephemeral-thread", ephemeral),
    Legal(COMPLETE, "another-query-by-the-cursor", another_query_between),
    Legal(COMPLETE, "last-page-is-empty", empty_page_at_the_end),
    Legal(ONCE, "thread-touched-and-told-twice", touched_and_told_twice),
    Legal(ONCE, "running-thread-told-twice", running_while_listed),
    Legal(SIZE, "shorter-pages", short_pages),
    Legal(SIZE, "limit-of-none", none_for_zero),
]
ILLEGAL: list[Illegal] = [
    Illegal(COMPLETE, "fork-with-a-turn-lost", lambda: forked(*ALL, turn=True)),
    Illegal(COMPLETE, "thread-lost-at-the-end-of-a-page", lambda: lost_between(False)),
    Illegal(COMPLETE, "thread-lost-while-another-is-added", lambda: lost_between(True)),
    Illegal(COMPLETE, "archived-thread-in-no-list", archived_without_a_trace),
    Illegal(ONCE, "thread-moved-to-the-next-page", twice_after_an_addition),
    Illegal(ONCE, "thread-twice-on-a-page", lambda: page(three(), *[listed(3)] * 2, then="more")),
]
