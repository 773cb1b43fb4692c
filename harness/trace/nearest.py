"""Messages about unknown names that suggest the nearest valid one.

It is in the lowest layer, so that every layer can use it.
"""

import difflib
import re
from collections.abc import Iterable, Sequence

MAX_NAMES_LISTED = 40
"""A message lists all valid names if there are at most this many."""
_MIN_TYPO_LIKENESS = 0.85
"""The similarity from which a name counts as a mistyped valid one."""
_MAX_SUGGESTIONS = 3
_MIN_PART_CHARACTERS = 3


def nearest(name: str, valid: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the most similar valid name, ignoring case; "" if none is near."""
    names = sorted(valid)
    near = difflib.get_close_matches(name, names, n=1, cutoff=cutoff)
    if near:
        return near[0]
    by_lower = {candidate.lower(): candidate for candidate in names}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[near[0]] if near else ""


def similar_names(name: str, valid: Iterable[str]) -> list[str]:
    """Return the names that may be meant: the mistyped one, else three with a word beginning so.

    `plain` finds `turns/plain-turn`. If neither fits, return the nearest name, [] if none is near.
    """
    names = sorted(set(valid))
    near = nearest(name, names)
    if near and _likeness(name, near) >= _MIN_TYPO_LIKENESS:
        return [near]
    part = re.compile(rf"(?<![^\W_]){re.escape(name)}", re.IGNORECASE)
    containing = [
        candidate
        for candidate in names
        if len(name) >= _MIN_PART_CHARACTERS and part.search(candidate)
    ]
    containing.sort(key=lambda candidate: -_likeness(name, candidate))
    return containing[:_MAX_SUGGESTIONS] or ([near] if near else [])


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """Return "; did you mean 'client'?" for the similar names, "" if there are none."""
    near = [repr(candidate) for candidate in similar_names(name, valid)]
    return f"; did you mean {_join_with_or(near)}?" if near else ""


def unknown_name(kind: str, name: str, valid: Iterable[str], *, listed: str = "") -> str:
    """Return "unknown key 'clinet'; did you mean 'client'?", or list valid names if none is near.

    `listed` is the command that lists the names; it is added, and replaces a list that is too long.
    """
    names = sorted(set(valid))
    near = did_you_mean(name, names)
    see = f" ({listed})" if listed else ""
    if near:
        return f"unknown {kind} {name!r}{near}{see}"
    if len(names) <= MAX_NAMES_LISTED:
        return f"unknown {kind} {name!r}; expected one of: {', '.join(names)}{see}"
    if listed:
        return f"unknown {kind} {name!r}; none of the {len(names)} is like it{see}"
    some = difflib.get_close_matches(name, names, n=5, cutoff=0.0)
    return f"unknown {kind} {name!r}; there are {len(names)}, such as: {', '.join(some)}"


def _likeness(name: str, other: str) -> float:
    return difflib.SequenceMatcher(None, name.lower(), other.lower()).ratio()


def _join_with_or(words: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
