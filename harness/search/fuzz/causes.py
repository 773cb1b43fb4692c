"""Causes of failures found so far, so that a search looks for others.

A cause is a rule, or the id of a finding; its occasion is the request with the member that is
wrong, or how the server ended. Two defects may break one rule or crash the server, so another
occasion of a cause is followed up too, but not always: one defect shows on many occasions.
"""

from collections import Counter
from collections.abc import Iterable

# Occasions of one cause that are followed up; each takes the time of a shrink.
MAX_OCCASIONS = 5
# Occasions of one method: wrong values come in groups, and must not hide other methods.
MAX_OCCASIONS_OF_METHOD = 2
# Places of one cause in sessions, where one defect shows in the answers of many methods.
MAX_PLACES = 2
# Follow-ups of a cause that was not reproduced: a flaky session must not hide a steady one, and a
# server under load must not take all the time.
MAX_LOST = 4


class Causes:
    """Causes found in a run. `known_causes` are ignored on all occasions."""

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
        """Return whether to follow up a cause on this occasion; limited to `max_occasions`."""
        if not self._is_open(cause, max_occasions):
            return False
        occasions = self._occasions.get(cause, set())
        of_method = [other for other in occasions if method_of(other) == method_of(occasion)]
        return not self._followed[cause] or (
            occasion not in occasions and len(of_method) < MAX_OCCASIONS_OF_METHOD
        )

    def is_new_place(self, cause: str, occasion: str) -> bool:
        """Return whether to follow up a cause at this place, whatever the method; at most two."""
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
        """Record that a cause is followed up; return the occasion it must show on, "" for any."""
        # The first one may change its occasion while it is shrunk; a later one must not turn into
        # the first.
        must_show_on = occasion if cause in self._confirmed else ""
        self._followed[cause] += 1
        self._occasions.setdefault(cause, set()).add(occasion)
        return must_show_on

    def lose(self, cause: str, occasion: str) -> None:
        """Forget a cause on this occasion, because it was not reproduced."""
        self._lost[cause] += 1
        self._followed[cause] -= 1
        self._occasions[cause].discard(occasion)

    def was_lost(self, cause: str) -> bool:
        """Return whether the cause was not reproduced before, and never confirmed."""
        return self._lost[cause] > 0 and cause not in self._confirmed

    def confirm(self, cause: str, occasion: str) -> None:
        """Record that a cause was confirmed and shrunk on this occasion."""
        self._confirmed.add(cause)
        self._occasions.setdefault(cause, set()).add(occasion)


def occasion_at(method: str, place: str) -> str:
    """Return the occasion for a message with a wrong member at `place`, "" if it is unknown."""
    return f"{method or 'a message'}, {place}" if place else method


def method_of(occasion: str) -> str:
    """Return the method of an occasion."""
    return occasion.partition(", ")[0]


def place_of(occasion: str) -> str:
    """Return the name of the wrong member, or how the server ended; "" if it is unknown."""
    return occasion.partition(", ")[2].rpartition(".")[2]
