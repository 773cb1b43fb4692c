"""Answers to unknown names, with the nearest valid one.

It is in the lowest layer, so that every layer can use it.
"""

import difflib
import re
from collections.abc import Iterable, Sequence

MAX_NAMES_LISTED = 40
"""The number of names up to which a message lists all."""
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
    """Return the valid names that may be meant: a mistyped one, else those that contain this.

    `plain` is a part of `turns/plain-turn`.
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
    """ "; did you mean 'client'?", or nothing."""
    near = [repr(candidate) for candidate in similar_names(name, valid)]
    return f"; did you mean {_join_with_or(near)}?" if near else ""


def unknown_name(kind: str, name: str, valid: Iterable[str], *, listed: str = "") -> str:
    """ "unknown key 'clinet'; did you mean 'client'?", with the valid names where none is near.

    `listed` is the command that lists them, which is always named; then unlike names are not.
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
