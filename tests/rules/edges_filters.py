"""Edge cases of the rules on filters and order of thread/list, and on unloaded threads."""

from typing import Any

from harness.judge.verdict import Level
from harness.trace.marks import StepBegins
from tests.rules.edge import Illegal, Legal
from tests.rules.good_lists import archives, unarchives
from tests.rules.list_talk import HOME, begin, listed, page, pages, start
from tests.rules.traces import CREATED, Talk, settings, stored_plain_turn

ORDER, APART, CWD, PROVIDERS = (
    "list.order",
    "list.archived-apart",
    "list.cwd-exact",
    "list.providers-kept",
)
TERM, KINDS, CURSOR = "list.title-holds-term", "list.source-kinds", "list.cursor-leads-on"
UNLOADED, MEMORY = "status.unloaded-shown", "status.not-loaded-not-in-memory"
IDLE: dict[str, Any] = {"status": {"type": "idle"}}
BELOW: dict[str, Any] = {"cwd": f"{HOME}/below"}
ALL = (listed(3), listed(2), listed(1))
RESUMED = listed(1, turns=[stored_plain_turn()], **IDLE)
STRANGER = listed(9)
PREVIEW = "thread.preview-first-message"


def three() -> Talk:
    """Three threads, each with a turn."""
    return begin(Talk(), 1, 2, 3)


def timed(*times: float, key: str = "createdAt") -> list[dict[str, Any]]:
    """Threads as they are listed, with these times in seconds after the first."""
    return [listed(at, **{key: CREATED + time}) for at, time in enumerate(times, start=1)]


def touched_between_pages() -> Talk:
    """A thread takes a turn between pages, and the later page shows its new time."""
    talk = begin(three(), 4)
    page(talk, listed(4), listed(3), then="more", limit=2, sortKey="updated_at")
    talk.plain_turn("turn_5", "thr_1")
    late = listed(1, updatedAt=CREATED + 9000)
    return page(talk, listed(2), late, limit=2, sortKey="updated_at", cursor="more")


def used_in_the_archive(**asked: Any) -> Talk:
    """A thread in the archive takes another turn: where it then is, is not said."""
    talk = archives(three(), "thr_1").asks("thread/resume", threadId="thr_1")
    talk.refuses().plain_turn("turn_4", "thr_1")
    others = () if asked else (listed(3), listed(2))
    return page(talk, *others, listed(1), **asked)


def archived_by_a_stranger() -> Talk:
    """A client that is not seen archives a thread."""
    return page(
        three().tells("thread/archived", threadId="thr_1"), listed(1, preview=""), archived=True
    )


def brought_back_meanwhile() -> Talk:
    """A thread is brought back and archived again while the archive is listed."""
    talk = archives(three(), "thr_1").asks("thread/list", archived=False)
    unarchives(talk, 1)
    archives(talk, "thr_1")
    return talk.answers({"data": [listed(3), listed(2), listed(1)], "nextCursor": None}, to=8)


def moved_by_a_turn(*threads: dict[str, Any], cwd: str) -> Talk:
    """A turn runs in another folder, and the threads of a folder are listed."""
    talk = begin(Talk(), 1).ask_turn("thr_1", cwd=BELOW["cwd"]).reply_turn("turn_2")
    talk.status("active", "thr_1").turn_started("turn_2", "thr_1").end_turn("turn_2", "thr_1")
    return page(talk, *threads, cwd=cwd)


def title_of_its_own() -> Talk:
    """The title of a thread is made of what its agent said."""
    talk = start(Talk(), 1).start_turn("turn_1", "thr_1").message("m", "Zebras", thread="thr_1")
    return page(talk.end_turn("turn_1", "thr_1"), listed(1), searchTerm="Zebra")


def named(words: str) -> Talk:
    """A thread with a name."""
    talk = begin(Talk(), 1).asks("thread/name/set", threadId="thr_1", name=words).answers({})
    return talk.tells("thread/name/updated", threadId="thr_1", name=words)


def stranger_with_a_title() -> Talk:
    """A thread that was there before is found by a title that nobody here knows."""
    return page(three(), listed(9, preview="no more"), searchTerm="Quagga")


def by_kinds(*lists: tuple[list[str], bool], talk: Talk | None = None) -> Talk:
    """Lists by kinds; each has the thread or has it not."""
    talk = begin(Talk(), 1) if talk is None else talk
    for kinds, there in lists:
        page(talk, *([listed(1)] if there else []), sourceKinds=kinds)
    return talk


def used_by_another_kind() -> Talk:
    """A thread is used between two lists, perhaps by another kind of client."""
    talk = by_kinds((["cli"], True)).plain_turn("turn_2", "thr_1")
    return by_kinds((["vscode"], True), talk=talk)


def left(talk: Talk) -> Talk:
    """The only client leaves a thread."""
    talk.asks("thread/unsubscribe", threadId="thr_1").answers({"status": "unsubscribed"})
    return talk.status("notLoaded", "thr_1").tells("thread/closed", threadId="thr_1")


def in_memory(talk: Talk, *threads: str) -> Talk:
    """thread/loaded/list and its answer."""
    return talk.asks("thread/loaded/list").answers({"data": list(threads), "nextCursor": None})


def resumes(talk: Talk) -> Talk:
    """thread/resume and its answer."""
    talk.asks("thread/resume", threadId="thr_1")
    return talk.answers({"thread": RESUMED, **settings()})


def loaded_again() -> Talk:
    """A thread is left, resumed, and listed as idle."""
    talk = resumes(left(begin(Talk(), 1)))
    return page(in_memory(talk, "thr_1"), listed(1, **IDLE))


def loaded_by_another() -> Talk:
    """Another client resumes a thread that this one has left."""
    talk = resumes(left(begin(Talk(), 1)).on("c2")).on("c1")
    return page(in_memory(talk, "thr_1"), listed(1, **IDLE))


def one_of_two_left() -> Talk:
    """One of two subscribers leaves a thread: it stays loaded."""
    talk = resumes(begin(Talk(), 1).on("c2")).on("c1")
    talk.asks("thread/unsubscribe", threadId="thr_1").answers({"status": "unsubscribed"})
    return page(in_memory(talk, "thr_1"), listed(1, **IDLE))


def resumed_while_it_left() -> Talk:
    """Leaving and resuming are asked for at once, and the status comes late."""
    talk = begin(Talk(), 1).asks("thread/unsubscribe", threadId="thr_1")
    talk.asks("thread/resume", threadId="thr_1").answers({"status": "unsubscribed"}, to=3)
    talk.status("notLoaded", "thr_1").answers({"thread": RESUMED, **settings()}, to=4)
    return page(in_memory(talk, "thr_1"), listed(1, **IDLE))


def restarted(talk: Talk) -> Talk:
    """The server is started again, over the same home."""
    return talk.mark(StepBegins("restart", 1)).on("c2")


def loaded_ones() -> Talk:
    """Threads that are loaded are listed as not loaded, which is how a list may show all."""
    return in_memory(page(three(), *ALL), "thr_3", "thr_2", "thr_1")


def loaded_at_the_start() -> Talk:
    """A server that was started again has loaded all its threads."""
    return page(in_memory(restarted(begin(Talk(), 1)), "thr_1"), listed(1, **IDLE))


def forked_after_a_restart() -> Talk:
    """A thread is forked after a restart, for which it is loaded."""
    talk = restarted(begin(Talk(), 1)).asks("thread/fork", threadId="thr_1").refuses()
    return page(talk, listed(1, **IDLE))


def empty_on_the_way() -> Talk:
    """A page in the middle is empty, and leads on."""
    talk = page(three(), listed(3), then="a", limit=2)
    page(talk, then="b", limit=2, cursor="a")
    return page(talk, listed(2), listed(1), limit=2, cursor="b")


def one_cursor() -> Talk:
    """One cursor leads from each page to the next: the server remembers where it was."""
    talk = page(three(), listed(3), then="a", limit=1)
    page(talk, listed(2), then="a", limit=1, cursor="a")
    return page(talk, listed(1), limit=1, cursor="a")


def cursor_of_another(**asked: Any) -> Talk:
    """A cursor goes on in the list that gave it, whatever else is asked for with it."""
    talk = page(three(), listed(3), then="a", limit=1)
    return page(talk, listed(2), listed(1), cursor="a", limit=1, **asked)


def by_creation() -> Talk:
    """A list by the time of the last change is in the order of creation."""
    times = timed(9000, 7000, 8000, key="updatedAt")
    return page(three(), *times, sortKey="updated_at")


def brought_back_and_lost() -> Talk:
    """A thread that was brought back from the archive is not listed any more."""
    return page(unarchives(archives(three(), "thr_1"), 1), listed(3), listed(2))


def old() -> Talk:
    """A thread of a server that was started again."""
    return restarted(begin(Talk(), 1))


def cursor_refused(talk: Talk) -> Talk:
    """A cursor is refused."""
    return talk.asks("thread/list", cursor="a", limit=1).refuses("that cursor is too old")


def first_of_three() -> Talk:
    """The first page of a list."""
    return page(three(), listed(3), then="a", limit=1)


LEGAL: list[Legal] = [
    Legal(
        CURSOR,
        "refused-since-a-thread-was-added",
        lambda: cursor_refused(begin(first_of_three(), 4)),
        frozenset({CURSOR}),
    ),
    Legal(ORDER, "oldest-first", lambda: pages(three(), listed(1), listed(2), listed(3))),
    Legal(ORDER, "within-a-second", lambda: page(three(), *timed(0.9, 0.1, 0.5))),
    Legal(ORDER, "rounded", lambda: page(three(), *timed(2.4, 1.6, 1.5))),
    Legal(ORDER, "touched-between-pages", touched_between_pages),
    Legal(APART, "used-in-the-archive", used_in_the_archive),
    Legal(APART, "used-and-still-in-the-archive", lambda: used_in_the_archive(archived=True)),
    Legal(APART, "archived-by-a-stranger", archived_by_a_stranger, frozenset({PREVIEW})),
    Legal(APART, "brought-back-meanwhile", brought_back_meanwhile),
    Legal(CWD, "another-spelling", lambda: page(three(), listed(1), cwd=f"{HOME}/./")),
    Legal(CWD, "folder-of-a-turn", lambda: moved_by_a_turn(listed(1), cwd=BELOW["cwd"])),
    Legal(CWD, "folder-of-the-start", lambda: moved_by_a_turn(cwd=HOME)),
    Legal(
        CWD,
        "through-a-link",
        lambda: page(three(), listed(1), cwd="/elsewhere/project"),
        frozenset({CWD}),
    ),
    Legal(PROVIDERS, "any-of-none", lambda: pages(three(), *ALL, modelProviders=[])),
    Legal(PROVIDERS, "thread-of-others", lambda: page(three(), STRANGER, modelProviders=["x"])),
    Legal(TERM, "title-of-its-own", title_of_its_own),
    Legal(TERM, "found-by-name", lambda: page(named("a Zebra"), listed(1), searchTerm="Zebra")),
    Legal(TERM, "not-found-by-name-alone", lambda: page(named("a Zebra"), searchTerm="Zebra")),
    Legal(TERM, "not-found-by-preview-alone", lambda: page(named("a Zebra"), searchTerm="hello")),
    Legal(TERM, "thread-of-others", stranger_with_a_title),
    Legal(KINDS, "empty-list-of-kinds", lambda: by_kinds((["cli"], True), ([], False))),
    Legal(KINDS, "a-kind-within-another", lambda: by_kinds((["cli"], True), (["any"], True))),
    Legal(KINDS, "used-by-another-kind", used_by_another_kind),
    Legal(CURSOR, "empty-page-on-the-way", empty_on_the_way),
    Legal(CURSOR, "one-cursor-for-all-pages", one_cursor),
    Legal(TERM, "cursor-of-another-list", lambda: cursor_of_another(searchTerm="Zebra")),
    Legal(APART, "cursor-of-another-list", lambda: cursor_of_another(archived=True)),
    Legal(PROVIDERS, "cursor-of-another-list", lambda: cursor_of_another(modelProviders=["x"])),
    Legal(CWD, "cursor-of-another-list", lambda: cursor_of_another(cwd="/elsewhere")),
    Legal(UNLOADED, "loaded-again", loaded_again),
    Legal(UNLOADED, "loaded-by-another", loaded_by_another),
    Legal(UNLOADED, "one-of-two-left", one_of_two_left),
    Legal(UNLOADED, "loaded-at-the-start", loaded_at_the_start),
    Legal(UNLOADED, "forked-after-a-restart", forked_after_a_restart),
    Legal(MEMORY, "resumed-while-it-left", resumed_while_it_left),
    Legal(MEMORY, "loaded-one-listed-as-not", loaded_ones),
]
ILLEGAL: list[Illegal] = [
    Illegal(CURSOR, "refused", lambda: cursor_refused(first_of_three())),
    Illegal(
        CURSOR,
        "refused-since-a-thread-was-archived",
        lambda: cursor_refused(archives(first_of_three(), "thr_1")),
        Level.SHOULD,
    ),
    Illegal(ORDER, "up-and-down", lambda: page(three(), *timed(0, 2, 1))),
    Illegal(ORDER, "order-of-another-key", by_creation),
    Illegal(CWD, "folder-above", lambda: page(begin(Talk(), 1), listed(1), cwd="/home/user")),
    Illegal(CWD, "folder-below", lambda: page(begin(Talk(), 1), listed(1), cwd=BELOW["cwd"])),
    Illegal(
        CWD,
        "folder-of-the-same-name",
        lambda: page(begin(Talk(), 1), listed(1), cwd="/elsewhere/project"),
        Level.SHOULD,
    ),
    Illegal(TERM, "another-case", lambda: page(three(), listed(1), searchTerm="Hello there")),
    Illegal(TERM, "name-in-another-case", lambda: page(named("Ab"), listed(1), searchTerm="aB")),
    Illegal(
        "list.complete",
        "term-in-name-and-preview",
        lambda: page(page(named("say hello"), listed(1)), searchTerm="hell"),
    ),
    Illegal("list.complete", "brought-back-and-lost", brought_back_and_lost),
    Illegal(UNLOADED, "idle-after-a-restart", lambda: page(old(), listed(1, **IDLE))),
    Illegal(
        UNLOADED, "idle-after-its-end", lambda: page(left(three()), *ALL[:2], listed(1, **IDLE))
    ),
]
