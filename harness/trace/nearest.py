"""How a name that nothing has is answered: with the nearest of those that there are.

Here: the wording, which the errors of scenarios, profiles and command lines share. It stands in the
lowest layer, so that each of them can have it. Not here: which names there are.
"""

import difflib
from collections.abc import Iterable

MANY = 40
"""Names beyond which a message gives some of them."""


def nearest(name: str, valid: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The valid name that is most like this one, "" where none is near; case does not count."""
    names = sorted(valid)
    near = difflib.get_close_matches(name, names, n=1, cutoff=cutoff)
    if near:
        return near[0]
    by_lower = {one.lower(): one for one in names}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[near[0]] if near else ""


def hint(name: str, valid: Iterable[str]) -> str:
    """ "; did you mean 'client'?", or nothing."""
    near = nearest(name, valid)
    return f"; did you mean {near!r}?" if near else ""


def unknown(what: str, name: str, valid: Iterable[str]) -> str:
    """ "unknown key 'clinet'; did you mean 'client'?", with the valid names where none is near."""
    names = sorted(valid)
    near = hint(name, names)
    if near:
        return f"unknown {what} {name!r}{near}"
    if len(names) > MANY:
        some = difflib.get_close_matches(name, names, n=5, cutoff=0.0)
        return f"unknown {what} {name!r}; there are {len(names)}, such as: {', '.join(some)}"
    return f"unknown {what} {name!r}; expected one of: {', '.join(names)}"
