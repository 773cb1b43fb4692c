"""Text of the coverage of sequences, from the JSON value of `harness fuzz --what sequences`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# Why goals are not covered, in the order in which they are told; the keys of the JSON value.
REASONS = {
    "impossible": "impossible here",
    "refused": "refused",
    "stopped": "stopped",
    "not_played": "not played",
}


def coverage_lines(coverage: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each kind of goal: `pairs on one thread: 2,303 of 2,401 (98 refused)`."""
    for kind in coverage:
        rest = [f"{kind[key]:,} {words}" for key, words in REASONS.items() if kind[key]]
        others = f" ({', '.join(rest)})" if rest else ""
        yield f"{kind['goals']}: {kind['covered']:,} of {kind['total']:,}{others}"
