"""Causes of failures that were found before, so that a search looks for others.

A cause is a rule, or the id of a finding; its occasion is the request with the member that is
wrong, or how the server ended. Two defects may break one rule or crash the server, so another
occasion of a cause is followed up too, but not always: one defect shows on many occasions.
"""

from collections import Counter
from collections.abc import Iterable

# Occasions of one cause that are followed up, each for as long as shrinking takes.
MAX_OCCASIONS = 5
# Those of one method: a wrong value mostly has wrong neighbours, which must not hide other methods.
MAX_OCCASIONS_OF_METHOD = 2
# In sessions one defect shows in the answers of many methods, so only the place distinguishes two.
MAX_PLACES = 2
# Times that an unreproducible cause is followed up: a flaky session must not hide a steady one, nor
# may a server under load take all the time.
MAX_LOST = 4


class Causes:
    """The causes found in a run. `known_causes` are ignored on all occasions."""

    def __init__(self, known_causes: Iterable[str] = ()) -> None:
        self._known = set(known_causes)
        self._occasions: dict[str, set[str]] = {}
        self._followed: Counter[str] = Counter()
        self._confirmed: set[str] = set()
        self._lost: Counter[str] = Counter()

    def set_aside(self, cause: str, occasion: str = "") -> None:
        """Ignore a cause on this occasion, or on all of them."""
        if occasion:
            self._confirmed.add(cause)
            self._followed[cause] += 1
            self._occasions.setdefault(cause, set()).add(occasion)
        else:
            self._known.add(cause)

    def is_new(self, cause: str, occasion: str, max_occasions: int = MAX_OCCASIONS) -> bool:
        """Return whether to follow it up; at most `max_occasions` of one cause are."""
        if not self._is_open(cause, max_occasions):
            return False
        occasions = self._occasions.get(cause, set())
        of_method = [other for other in occasions if method_of(other) == method_of(occasion)]
        return not self._followed[cause] or (
            occasion not in occasions and len(of_method) < MAX_OCCASIONS_OF_METHOD
        )

    def is_new_place(self, cause: str, occasion: str) -> bool:
        """Return whether to follow it up if the method says nothing: at most two places are."""
        if not self._is_open(cause, MAX_PLACES):
            return False
        places = {place_of(other) for other in self._occasions.get(cause, ())}
        place = place_of(occasion)
        return not self._followed[cause] or (place != "" and not {"", place} & places)

    def _is_open(self, cause: str, max_occasions: int) -> bool:
        return (
            cause not in self._known
            and self._followed[cause] < max_occasions
            and self._lost[cause] < MAX_LOST
        )

    def follow(self, cause: str, occasion: str) -> str:
        """Note that it is followed up; return the occasion on which it must show, "" for any."""
        # The first may show on another occasion when it is shrunk; a later one must not become the
        # first again.
        must_show_on = occasion if cause in self._confirmed else ""
        self._followed[cause] += 1
        self._occasions.setdefault(cause, set()).add(occasion)
        return must_show_on

    def lose(self, cause: str, occasion: str) -> None:
        """Forget it, because it did not show again when it was followed up."""
        self._lost[cause] += 1
        self._followed[cause] -= 1
        self._occasions[cause].discard(occasion)

    def was_lost(self, cause: str) -> bool:
        """Return whether it was lost before and not confirmed since."""
        return self._lost[cause] > 0 and cause not in self._confirmed

    def confirm(self, cause: str, occasion: str) -> None:
        """Note that it was confirmed and shrunk on this occasion."""
        self._confirmed.add(cause)
        self._occasions.setdefault(cause, set()).add(occasion)


def occasion_at(method: str, place: str) -> str:
    """Return the occasion of a method's message with something wrong at a place, "" for unknown."""
    return f"{method}, {place}" if place else method


def method_of(occasion: str) -> str:
    """Return the method of an occasion."""
    return occasion.partition(", ")[0]


def place_of(occasion: str) -> str:
    """Return the name of the wrong member, or how the server ended; "" if neither is known."""
    return occasion.partition(", ")[2].rpartition(".")[2]
