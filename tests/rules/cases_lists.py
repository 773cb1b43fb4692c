"""Cases of the rules on pages of thread/list."""

from tests.rules.case import Case, Found, silent
from tests.rules.list_talk import answered, begin, listed, page, pages, start
from tests.rules.traces import Talk

# A thread with a whole turn takes 15 messages: so many are before the first thread/list.
ONE, TWO, THREE = 15, 30, 45


def three() -> Talk:
    """Three threads, each with a turn: seqs 0 to 44."""
    return begin(Talk(), 1, 2, 3)


CASES = [
    Case(
        rule="list.page-size",
        good=page(three(), listed(3), listed(2), then="more", limit=2),
        witnesses=("request thread/list id 7",),
        bad=page(three(), listed(3), listed(2), listed(1), limit=2),
        found=(Found("request thread/list id 7", (THREE, THREE + 1)),),
        idle=page(page(page(three(), listed(3), limit=2), listed(3), limit=0), listed(3)),
    ),
    Case(
        rule="list.complete",
        good=pages(three(), listed(3), listed(2), listed(1)),
        witnesses=("thread thr_1", "thread thr_2", "thread thr_3"),
        bad=pages(three(), listed(3), listed(2), listed(9)),
        found=(Found("thread thr_1", (1, THREE, THREE + 3)),),
        # Not the end of the list; a thread without a turn; an answer to nothing.
        idle=answered(
            page(page(start(Talk(), 1)), listed(2), then="more").sends({"method": "x"}), to=9
        ),
    ),
    Case(
        rule="list.once",
        good=pages(three(), listed(3), listed(2), listed(1)),
        witnesses=("request thread/list id 7", "request thread/list id 8"),
        bad=pages(three(), listed(3), listed(2), listed(3)),
        found=(Found("thread thr_3", (THREE + 2, THREE + 1, THREE + 3)),),
        idle=page(silent(), listed(1)),
    ),
]
