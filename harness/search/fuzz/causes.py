"""Failures that were found before, so that a search goes on for others.

A cause is a rule, or the id of a finding; its occasion is what was going on: the request, and how
the server ended. A server may crash of two defects, so that another occasion of a cause is followed
up too, but only so often: one defect shows on many occasions.
"""

from collections import Counter
from collections.abc import Iterable

# So many occasions of one cause are followed up, each for as long as making it small takes.
MAX_OCCASIONS = 3
# So often a cause that did not show again is followed up: a session that needs luck must not hide
# one that does not, nor a server under load take all the time.
MAX_LOST = 4


class Causes:
    """The causes found in a run. `whole` are those that are set aside on all occasions."""

    def __init__(self, whole: Iterable[str] = ()) -> None:
        self._whole = set(whole)
        self._occasions: dict[str, set[str]] = {}
        self._followed: Counter[str] = Counter()
        self._told: set[str] = set()
        self._lost: Counter[str] = Counter()

    def set_aside(self, cause: str, occasion: str = "") -> None:
        """It is known, on this occasion, or on all of them."""
        if occasion:
            self._told.add(cause)
            self._followed[cause] += 1
            self._occasions.setdefault(cause, set()).add(occasion)
        else:
            self._whole.add(cause)

    def is_news(self, cause: str, occasion: str, most: int) -> bool:
        """Return whether it is to be followed up; at most so many occasions of one cause are."""
        if cause in self._whole or self._followed[cause] >= most or self._lost[cause] >= MAX_LOST:
            return False
        return not self._followed[cause] or occasion not in self._occasions.get(cause, ())

    def follow(self, cause: str, occasion: str) -> str:
        """It is being followed up; the occasion on which it must show, "" for any."""
        # The first may show on another occasion when it is made smaller; a later one must not
        # become the first again.
        must_show_on = occasion if cause in self._told else ""
        self._followed[cause] += 1
        self._occasions.setdefault(cause, set()).add(occasion)
        return must_show_on

    def lose(self, cause: str, occasion: str) -> None:
        """It was followed up and did not show again: it is as if it had never come up."""
        self._lost[cause] += 1
        self._followed[cause] -= 1
        self._occasions[cause].discard(occasion)

    def was_lost(self, cause: str) -> bool:
        """Return whether it was followed up in vain before, and not found since."""
        return self._lost[cause] > 0 and cause not in self._told

    def tell(self, cause: str, occasion: str) -> None:
        """It was found, made small, on this occasion."""
        self._told.add(cause)
        self._occasions.setdefault(cause, set()).add(occasion)
