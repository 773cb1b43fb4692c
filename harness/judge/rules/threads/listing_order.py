"""Rule on the order of the threads in thread/list."""
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

# A server may sort by whole seconds and show fractions, or round them.
A_SECOND = 1
SHOWN_AS = {"created_at": "createdAt", "updated_at": "updatedAt"}
# Two threads are always in a rising or a falling order.
MIN_THREADS = 3
# Last pages of a list that are compared; more would take too long for a long list.
MAX_PAGES = 5


@dataclass(frozen=True, slots=True)
class _Time:
    """A time of a listed thread in seconds, with its member."""

    value: float
    field: Member


@rule(
    "list.order",
    title="A list is in the order of its sort key",
    level=Level.MUST,
    needs=("thread-list",),
)
class Order(ListMonitor):
    """Judges that the times by which a list is sorted all rise, or all fall.

    By `createdAt` if sortKey is created_at or omitted, by `updatedAt` if it is updated_at; on one
    page, and on a few consecutive pages. Two threads whose times are less than a second apart may
    be in either order. Left open: the direction; by updated_at, threads that may have changed
    meanwhile, and on several pages those of other clients.
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
        for compared in (alone, *([pages] if len(pages.pages) > 1 else ())):
            times = self._times(compared, sort_key)
            rises, falls = _pair(times, rising=True), _pair(times, rising=False)
            if rises is not None and falls is not None:
                first, second = sorted((rises, falls), key=lambda pair: times.index(pair[1]))
                clause = "thread-list.sort-key" if "sortKey" in page.params else "sort-key.default"
                expected = "times that all rise or all fall"
                also = [time.field for time in dict.fromkeys((*first, second[0]))]
                frames = tuple(
                    dict.fromkeys((page.request, *(time_field.frame for time_field in also), frame))
                )
                field, subject = second[1].field, request_subject(page.request)
                return [wrong(subject, frames, field, expected, also=also, clauses=(clause,))]
        all_times = self._times(pages, sort_key)
        if len(all_times) >= MIN_THREADS and (
            _pair(all_times, rising=True) or _pair(all_times, rising=False)
        ):
            return [Witness(request_subject(page.request), (page.request, frame))]
        return None

    def _times(self, pages: Pages, sort_key: str) -> list[_Time]:
        """Return the times of the threads on some pages that cannot have changed meanwhile."""
        threads, several = self.known_threads(pages.last), len(pages.pages) > 1
        times: list[_Time] = []
        places = (place for page in pages.pages[-MAX_PAGES:] for place in page.threads)
        for thread_id, field in places:
            thread = threads.get(thread_id)
            value = dig(field.value, SHOWN_AS[sort_key])
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if sort_key == "updated_at":
                if thread is None and several:
                    continue
                if thread is not None and not thread.is_unchanged(pages.first, pages.last):
                    continue
            times.append(_Time(value, field.part(SHOWN_AS[sort_key])))
        return times


def _pair(times: Sequence[_Time], *, rising: bool) -> tuple[_Time, _Time] | None:
    """Return the first time to which the list rises (or falls), after the lowest (highest) before.

    The two are a second or more apart. None if the list never rises (falls) by a second.
    """
    sign = 1 if rising else -1
    furthest: _Time | None = None
    for time in times:
        if furthest is not None and sign * (time.value - furthest.value) >= A_SECOND:
            return furthest, time
        if furthest is None or sign * (time.value - furthest.value) < 0:
            furthest = time
    return None
