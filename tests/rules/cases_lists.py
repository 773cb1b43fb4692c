"""Cases of the rules on pages of thread/list."""

from typing import Any

from harness.judge.verdict import Level
from harness.trace.marks import StepBegins
from tests.rules.case import Case, Found, silent
from tests.rules.good_lists import archives
from tests.rules.list_talk import HOME, answered, begin, listed, names, page, pages, start
from tests.rules.traces import CREATED, Talk, settings, stored_plain_turn, thread_object

# A thread with a whole turn takes 15 messages: so many are before the first thread/list.
ONE, TWO, THREE = 15, 30, 45


def three() -> Talk:
    """Three threads, each with a turn: seqs 0 to 44."""
    return begin(Talk(), 1, 2, 3)


FRACTIONS = ((1, 0.1), (2, 0.9), (3, 0.5))
BELOW: dict[str, Any] = {"cwd": f"{HOME}/below"}
OTHER: dict[str, Any] = {"modelProvider": "other"}


def below() -> Talk:
    """A thread, and one in a folder below that of the first."""
    return begin(begin(Talk(), 1), 2, **BELOW)


def left() -> Talk:
    """A thread with a turn, which its only client has left: seqs 0 to 17."""
    talk = begin(Talk(), 1).asks("thread/unsubscribe", threadId="thr_1")
    return talk.answers({"status": "unsubscribed"}).status("notLoaded", "thr_1")


def in_memory(talk: Talk, *threads: str) -> Talk:
    """thread/loaded/list and its answer."""
    return talk.asks("thread/loaded/list").answers({"data": list(threads), "nextCursor": None})


CASES = [
    Case(
        rule="list.page-size",
        good=page(three(), listed(3), listed(2), then="more", limit=2),
        witnesses=("request thread/list id 7",),
        bad=page(three(), listed(3), listed(2), listed(1), limit=2),
        found=(Found("request thread/list id 7", (THREE, THREE + 1)),),
        not_exercised=page(page(page(three(), listed(3), limit=2), listed(3), limit=0), listed(3)),
    ),
    Case(
        rule="list.complete",
        good=pages(three(), listed(3), listed(2), listed(1)),
        witnesses=("thread thr_1", "thread thr_2", "thread thr_3"),
        bad=pages(three(), listed(3), listed(2), listed(9)),
        found=(Found("thread thr_1", (1, THREE, THREE + 3)),),
        # Not the end of the list; a thread without a turn; an answer to nothing.
        not_exercised=answered(
            page(page(start(Talk(), 1)), listed(2), then="more").sends({"method": "x"}), to=9
        ),
    ),
    Case(
        rule="list.once",
        good=pages(three(), listed(3), listed(2), listed(1)),
        witnesses=("request thread/list id 7", "request thread/list id 8"),
        bad=pages(three(), listed(3), listed(2), listed(3)),
        found=(Found("thread thr_3", (THREE + 2, THREE + 1, THREE + 3)),),
        not_exercised=page(silent(), listed(1)),
    ),
    Case(
        rule="list.cursor-leads-on",
        good=pages(three(), listed(3), listed(2), listed(1)),
        witnesses=("request thread/list id 8",),
        bad=page(
            page(page(three(), listed(3), then="a"), then="a", cursor="a"),
            listed(3),
            then="b",
            limit=1,
        )
        .asks("thread/list", cursor="b", limit=1)
        .refuses(),
        found=(
            Found("request thread/list id 8", (THREE + 1, THREE + 2, THREE + 3)),
            Found("request thread/list id 10", (THREE + 5, THREE + 6, THREE + 7)),
        ),
        # A cursor with other params, one that no page gave, and the end of the list.
        not_exercised=page(three(), listed(3), then="a")
        .asks("thread/list", cursor="a", limit=1)
        .refuses()
        .asks("thread/list", cursor="z")
        .refuses(),
    ),
    Case(
        rule="list.order",
        good=pages(three(), listed(1), listed(2), listed(3)),
        witnesses=("request thread/list id 8",),
        bad=pages(
            page(three(), listed(1), listed(3), listed(2)),
            listed(3, updatedAt=CREATED),
            listed(1, updatedAt=CREATED + 9),
            listed(2, updatedAt=CREATED + 4),
            sortKey="updated_at",
        ),
        found=(
            Found("request thread/list id 7", (THREE, THREE + 1)),
            Found("request thread/list id 9", (THREE + 4, THREE + 3, THREE + 5)),
        ),
        # Less than a second apart; two threads alone; a thread that runs.
        not_exercised=page(
            page(
                page(three(), *(listed(n, createdAt=CREATED + t) for n, t in FRACTIONS)),
                listed(1),
                listed(2),
            ).start_turn("turn_4", "thr_1"),
            *(listed(n, updatedAt=CREATED + t) for n, t in ((1, 5), (2, 0), (3, 9))),
            sortKey="updated_at",
        ).end_turn("turn_4", "thr_1"),
    ),
    Case(
        rule="list.archived-apart",
        good=page(archives(three(), "thr_1"), listed(3), listed(2)),
        witnesses=("thread thr_1",),
        bad=page(page(archives(three(), "thr_1"), listed(1)), listed(2), archived=True),
        found=(
            Found("thread thr_1", (THREE, THREE + 3, THREE + 4)),
            Found("thread thr_2", (16, THREE + 5, THREE + 6)),
        ),
        not_exercised=page(three().asks("thread/archive", threadId="thr_1"), listed(3), listed(2)),
    ),
    Case(
        rule="list.cwd-exact",
        good=page(below(), listed(1), cwd=HOME),
        witnesses=("thread thr_2",),
        bad=page(below(), listed(1), listed(2, **BELOW), cwd=HOME),
        found=(Found("thread thr_2", (TWO, TWO + 1)),),
        # No folder that stands for itself; one that leads there; threads of others.
        not_exercised=page(
            page(begin(Talk(), 1), listed(1), cwd="project"),
            listed(1),
            listed(9, cwd="/elsewhere"),
            cwd=f"{HOME}/../project/",
        ),
    ),
    Case(
        rule="list.providers-kept",
        good=page(
            begin(begin(Talk(), 1), 2, **OTHER), listed(2, **OTHER), modelProviders=["other"]
        ),
        witnesses=("thread thr_1",),
        bad=page(three(), listed(1), modelProviders=["other", "another"]),
        found=(Found("thread thr_1", (THREE, THREE + 1)),),
        not_exercised=page(
            page(begin(Talk(), 1), listed(1), modelProviders=[]),
            listed(1),
            listed(9),
            modelProviders=["mock"],
        ),
    ),
    Case(
        rule="list.title-holds-term",
        good=page(three(), searchTerm="Hello there"),
        witnesses=("thread thr_1", "thread thr_2", "thread thr_3"),
        bad=page(three(), listed(3), searchTerm="HELLO"),
        found=(Found("thread thr_3", (THREE, THREE + 1)),),
        # What was said in it may be its title.
        not_exercised=page(page(begin(Talk(), 1), listed(1), searchTerm="Hel"), searchTerm="hello"),
    ),
    Case(
        rule="list.old-name-gone",
        good=page(names(names(begin(Talk(), 1), "Garden"), "Kitchen"), searchTerm="Gard"),
        witnesses=("thread thr_1",),
        bad=page(names(names(begin(Talk(), 1), "Garden"), "Kitchen"), listed(1), searchTerm="Gard"),
        found=(Found("thread thr_1", (ONE, ONE + 3, ONE + 6, ONE + 7), Level.SHOULD),),
        # It is a part of the last name too, and its only one.
        not_exercised=page(
            names(page(names(begin(Talk(), 1), "Garden"), searchTerm="Gard"), "Gardens"),
            searchTerm="Gard",
        ),
    ),
    Case(
        rule="list.source-kinds",
        good=page(
            page(
                page(begin(Talk(), 1), listed(1), sourceKinds=["vscode"]),
                sourceKinds=["cli"],
            ),
            listed(1),
            sourceKinds=["cli", "vscode"],
        ),
        witnesses=("thread thr_1",),
        bad=page(
            page(
                page(begin(Talk(), 1), listed(1), sourceKinds=["vscode"]),
                listed(1),
                sourceKinds=["cli"],
            ),
            sourceKinds=["cli", "vscode"],
        ),
        found=(
            Found("thread thr_1", (ONE, ONE + 1, ONE + 2, ONE + 3)),
            Found("thread thr_1", (ONE, ONE + 1, ONE + 4, ONE + 5)),
            Found("thread thr_1", (ONE + 2, ONE + 3, ONE + 4, ONE + 5)),
        ),
        # An empty list of kinds, kinds of the server's own, another filter.
        not_exercised=page(
            page(
                page(page(begin(Talk(), 1), listed(1), sourceKinds=[]), sourceKinds=["cli"]),
                listed(1),
                sourceKinds=["own"],
            ),
            listed(1),
            sourceKinds=["vscode"],
            searchTerm="h",
        ),
    ),
    Case(
        rule="status.unloaded-shown",
        good=page(left(), listed(1)),
        witnesses=("thread thr_1",),
        bad=page(
            page(left(), listed(1, status={"type": "idle"}))
            .mark(StepBegins("restart", 1))
            .on("c2"),
            listed(1, status={"type": "idle"}),
        ),
        found=(
            Found("thread thr_1", (ONE + 2, ONE + 3, ONE + 4)),
            Found("thread thr_1", (ONE + 2, ONE + 5, ONE + 6)),
        ),
        # A thread that is loaded, and one that was loaded again.
        not_exercised=page(
            page(begin(Talk(), 1), listed(1))
            .asks("thread/unsubscribe", threadId="thr_1")
            .answers({"status": "unsubscribed"})
            .status("notLoaded", "thr_1")
            .asks("thread/resume", threadId="thr_1"),
            listed(1),
        ),
    ),
    Case(
        rule="status.not-loaded-not-in-memory",
        good=in_memory(left()),
        witnesses=("thread thr_1",),
        bad=in_memory(left(), "thr_1"),
        found=(Found("thread thr_1", (ONE + 2, ONE + 3, ONE + 4)),),
        not_exercised=in_memory(page(begin(Talk(), 1), listed(1)), "thr_1"),
    ),
    Case(
        rule="thread.turns-unasked",
        good=page(begin(Talk(), 1), listed(1, turns=[])),
        witnesses=("thread thr_1",),
        bad=page(begin(Talk(), 1), listed(1, turns=[stored_plain_turn()]))
        .asks("thread/start")
        .answers({"thread": thread_object("thr_2", turns=[stored_plain_turn()]), **settings()}),
        found=(
            Found("thread thr_1", (ONE + 1,), Level.SHOULD),
            Found("thread thr_2", (ONE + 3,), Level.SHOULD),
        ),
        not_exercised=page(start(Talk(), 1), listed(1)),
    ),
]
