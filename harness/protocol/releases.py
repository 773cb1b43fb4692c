"""Release numbers such as `0.107.0`, and ranges of them: `since` and, not included, `until`."""

import re
from collections.abc import Mapping
from typing import Any

# Numbers, and a suffix such as `-alpha.3`, which does not count in comparisons.
_RELEASE = re.compile(r"(\d+(?:\.\d+)*)(?:[-+][0-9A-Za-z.+-]+)?")


def numbers_of(release: str) -> tuple[int, ...] | None:
    """Return the numbers of a release without zeros at the end, None if it is not a release."""
    match = _RELEASE.fullmatch(release)
    if match is None:
        return None
    numbers = [int(number) for number in match[1].split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def is_before(release: str, other: str) -> bool:
    """Return whether a release is older than another one; False if one of them is not valid."""
    numbers, others = numbers_of(release), numbers_of(other)
    return numbers is not None and others is not None and numbers < others


def holds_for(release: str, row: Mapping[str, Any]) -> bool:
    """Return whether the `since` and `until` of a row, if any, let a release in."""
    since, until = row.get("since"), row.get("until")
    return not (since and is_before(release, since)) and not (
        until and not is_before(release, until)
    )


def short_release(release: str) -> str:
    """Return `0.107` for `0.107.0`; any other patch number is kept."""
    return release.removesuffix(".0") if release.count(".") > 1 else release


def range_words(row: Mapping[str, Any]) -> str:
    """Return `since 0.150.0, until 0.169.0`, "" without a range."""
    return ", ".join(f"{key} {row[key]}" for key in ("since", "until") if row.get(key))
