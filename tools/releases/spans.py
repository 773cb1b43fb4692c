"""Ranges of releases in words: "0.107.0 to 0.113.0, since 0.150.0"."""

from collections.abc import Collection, Iterator, Sequence


def spans(releases: Sequence[str], present: Collection[str]) -> str:
    """Return in which of the `releases`, in their order, something is present.

    "all" if it is in each, "none" if it is in none; a range begins and ends with a release in which
    it was seen, and "since" says that it reaches to the last one.
    """
    ranges = list(_ranges(releases, present))
    if not ranges:
        return "none"
    first, last = releases[0], releases[-1]
    if ranges == [(first, last)]:
        return "all"
    return ", ".join(_words(begin, end, last) for begin, end in ranges)


def _words(begin: str, end: str, last: str) -> str:
    if begin == end:
        return begin
    return f"since {begin}" if end == last else f"{begin} to {end}"


def _ranges(releases: Sequence[str], present: Collection[str]) -> Iterator[tuple[str, str]]:
    begin = end = ""
    for release in releases:
        if release in present:
            begin, end = begin or release, release
        elif begin:
            yield begin, end
            begin = ""
    if begin:
        yield begin, end
