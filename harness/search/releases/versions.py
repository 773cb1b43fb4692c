"""The list of versions that a bisection or a matrix goes through, the oldest first."""

import json
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from harness.errors import UsageError
from harness.trace.nearest import did_you_mean

RANGE = ".."
_NPM_SECONDS = 60


def parse_versions(
    words: str,
    *,
    npm: str = "",
    pre_releases: bool = False,
    published: Callable[[str], Sequence[str]] | None = None,
) -> list[str]:
    """Return the versions of `a,b,c`, or of a range `a..b` of an npm package.

    A range leaves out pre-releases, unless `pre_releases`. `published` returns the versions of a
    package, sorted. Raises `UsageError`.
    """
    if RANGE not in words:
        return list(dict.fromkeys(word.strip() for word in words.split(",") if word.strip()))
    if not npm:
        raise UsageError(f"the range {words} needs the name of an npm package, or name each: a,b,c")
    first, _, last = (part.strip() for part in words.partition(RANGE))
    known = [
        version
        for version in (published or npm_versions)(npm)
        if pre_releases or version in (first, last) or "-" not in version
    ]
    for end in filter(None, (first, last)):
        if end not in known:
            raise UsageError(f"the range {words}: {npm} has no {end}{did_you_mean(end, known)}")
    if not known:
        raise UsageError(f"{npm} has no release, only versions before one")
    begin, end = known.index(first or known[0]), known.index(last or known[-1])
    if begin > end:
        raise UsageError(f"the range {words}: {first} is newer than {last}; swap them")
    return known[begin : end + 1]


def npm_versions(package: str) -> list[str]:
    """Return all versions of an npm package, sorted by npm. Raises `UsageError` if it cannot."""
    command = ["npm", "view", package, "versions", "--json"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_NPM_SECONDS, check=False
        )
        value: Any = json.loads(done.stdout or "null")
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise UsageError(f"{' '.join(command)}: {error}; name the versions: a,b,c") from error
    if isinstance(value, str):  # npm prints a single version without a list.
        return [value]
    if done.returncode or not isinstance(value, list):
        reason = (done.stderr.strip().splitlines() or ["it printed no list"])[0]
        raise UsageError(f"{' '.join(command)}: {reason}; name the versions: a,b,c")
    return [str(version) for version in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
