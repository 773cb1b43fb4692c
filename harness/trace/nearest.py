"""Answers to unknown names, with the nearest valid one.

It stands in the lowest layer, so that each of them can have it.
"""

import difflib
import re
from collections.abc import Iterable, Sequence

MAX_NAMES_LISTED = 40
"""Names beyond which a message does not give all of them."""
_SLIP = 0.85
"""How alike a name and a valid one are where somebody meant that one and mistyped it."""
_OFFERED = 3
_MIN_PART_CHARACTERS = 3


def nearest(name: str, valid: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The valid name that is most like this one, "" where none is near; case does not count."""
    names = sorted(valid)
    near = difflib.get_close_matches(name, names, n=1, cutoff=cutoff)
    if near:
        return near[0]
    by_lower = {one.lower(): one for one in names}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[near[0]] if near else ""


def alike(name: str, valid: Iterable[str]) -> list[str]:
    """The valid names that may be meant: one that was mistyped, else those that hold this one.

    `plain` is a part of `turns/plain-turn`, whatever else is spelled like it.
    """
    names = sorted(set(valid))
    near = nearest(name, names)
    if near and _likeness(name, near) >= _SLIP:
        return [near]
    part = re.compile(rf"(?<![^\W_]){re.escape(name)}", re.IGNORECASE)
    holding = [one for one in names if len(name) >= _MIN_PART_CHARACTERS and part.search(one)]
    holding.sort(key=lambda one: -_likeness(name, one))
    return holding[:_OFFERED] or ([near] if near else [])


def hint(name: str, valid: Iterable[str]) -> str:
    """ "; did you mean 'client'?", or nothing."""
    near = [repr(one) for one in alike(name, valid)]
    return f"; did you mean {_either(near)}?" if near else ""


def unknown(kind: str, name: str, valid: Iterable[str], *, listed: str = "") -> str:
    """ "unknown key 'clinet'; did you mean 'client'?", with the valid names where none is near.

    `listed` is the command that lists them, which is told in any case: then far-off ones are not.
    """
    names = sorted(set(valid))
    near = hint(name, names)
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


def _either(words: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
