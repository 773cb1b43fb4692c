"""Order and length of a report on one connection of a client: causes, then a few consequences.

A client that breaks a duty rarely plays the script as written, so most problems follow from it.
Nothing is imported here: the fixture `agent_server` uses it in the tests of others.
"""

from collections.abc import Iterator, Sequence
from typing import Final

MAX_CONSEQUENCES: Final = 3
"""The problems that are listed after a broken duty; the JSON report has all of them."""
MAX_REFUSED_LISTED: Final = 5
"""The refused requests that are listed."""


def problem_lines(problems: Sequence[str], *, after_duty: bool) -> Iterator[str]:
    """Yield the problems; after a broken duty the first few, and the number of the others."""
    limit = MAX_CONSEQUENCES if after_duty else len(problems)
    yield from problems[:limit]
    if len(problems) > limit:
        yield f"and {len(problems) - limit} more problem(s), which may follow from the above"


def refused_lines(refused: Sequence[str]) -> Iterator[str]:
    """Yield a line for each of the first refused requests, and the number of the others."""
    yield from (f"refused: {request}" for request in refused[:MAX_REFUSED_LISTED])
    if len(refused) > MAX_REFUSED_LISTED:
        yield f"refused: {len(refused) - MAX_REFUSED_LISTED} more request(s)"
