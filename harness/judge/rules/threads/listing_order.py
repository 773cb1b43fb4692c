"""The rule on the order in which thread/list gives threads."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Sequence
from dataclasses import dataclass

from harness.judge.base import Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.listed_pages import ListMonitor, Pages
from harness.judge.rules.shared.view_queries import request_subject
from harness.judge.rules.shared.violations import Member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import dig
from harness.trace.frame import Frame

# Times are in seconds: a server may sort by whole ones and show fractions, or round them.
A_SECOND = 1
SHOWN_AS = {"created_at": "createdAt", "updated_at": "updatedAt"}
# Of two threads every order is rising or falling.
MIN_THREADS = 3
# A page is compared with so many that came just before it, so that a long list is judged in time.
MAX_PAGES = 5


@dataclass(frozen=True, slots=True)
class _Time:
    """A time that a listed thread shows, in seconds, and where it stands."""

    value: float
    where: Member


@rule(
    "list.order",
    title="A list is in the order of its sort key",
    level=Level.MUST,
    needs=("thread-list",),
)
class Order(ListMonitor):
    """Judges that the times by which a list is sorted all rise, or all fall.

    By `createdAt`, where sortKey is created_at or not given, and by `updatedAt`, where it is
    updated_at; on one page, and on a few pages that follow one another. Two threads whose times are
    less than a second apart may stand in either order. Left open: which of the two directions; by
    updated_at, threads that may have changed while the pages were asked for, and on several pages
    those of others.
    """

    @on_answer("thread/list")
    def on_thread_list_answer(self, frame: Frame) -> Outcomes:
        pages = self.pages(frame)
        if pages is None:
            return None
        page = pages.pages[-1]
        sort_key = page.params.get("sortKey", "created_at")
        if not isinstance(sort_key, str) or sort_key not in SHOWN_AS:
            return None
        alone = Pages((page,))
        for one in (alone, *([pages] if len(pages.pages) > 1 else ())):
            times = self._times(one, sort_key)
            rises, falls = _pair(times, rising=True), _pair(times, rising=False)
            if rises is not None and falls is not None:
                first, second = sorted((rises, falls), key=lambda pair: times.index(pair[1]))
                clause = "thread-list.sort-key" if "sortKey" in page.params else "sort-key.default"
                expected = "times that all rise or all fall"
                also = [time.where for time in dict.fromkeys((*first, second[0]))]
                frames = tuple(dict.fromkeys((page.request, *(at.frame for at in also), frame)))
                where, subject = second[1].where, request_subject(page.request)
                return [wrong(subject, frames, where, expected, also=also, clauses=(clause,))]
        told = self._times(pages, sort_key)
        if len(told) >= MIN_THREADS and (_pair(told, rising=True) or _pair(told, rising=False)):
            return [Witness(request_subject(page.request), (page.request, frame))]
        return None

    def _times(self, pages: Pages, sort_key: str) -> list[_Time]:
        """The times of the threads on some pages that cannot have changed meanwhile."""
        known, several = self.known(pages.last), len(pages.pages) > 1
        times: list[_Time] = []
        listed = (place for page in pages.pages[-MAX_PAGES:] for place in page.threads)
        for thread_id, where in listed:
            thread = known.get(thread_id)
            value = dig(where.value, SHOWN_AS[sort_key])
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if sort_key == "updated_at":
                if thread is None and several:
                    continue
                if thread is not None and not thread.untouched(pages.first, pages.last):
                    continue
            times.append(_Time(value, where.part(SHOWN_AS[sort_key])))
        return times


def _pair(times: Sequence[_Time], *, rising: bool) -> tuple[_Time, _Time] | None:
    """A time and an earlier one that it is above (or below) by a second or more."""
    sign = 1 if rising else -1
    furthest: _Time | None = None
    for time in times:
        if furthest is not None and sign * (time.value - furthest.value) >= A_SECOND:
            return furthest, time
        if furthest is None or sign * (time.value - furthest.value) < 0:
            furthest = time
    return None
