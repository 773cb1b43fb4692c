"""Scenarios with one mistake each, stored in one file, in which a line `=== NAME` begins each.

`python -m tests.bad_scenarios NAME` prints one.
"""

import re
import sys
from functools import cache
from pathlib import Path

from harness.trace.nearest import unknown_name

STORED = Path(__file__).parents[1] / "fixtures" / "bad_scenarios.txt"


@cache
def bad_scenarios() -> dict[str, str]:
    """Return the text of each file by its name, such as `alias.scenario.yaml`."""
    text = STORED.read_text("utf-8")
    _, *parts = re.split(r"^=== (\S+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def write_bad(folder: Path, *names: str) -> list[Path]:
    """Write the named scenarios, or all, into a folder; return the sorted paths."""
    paths = [folder / name for name in names or bad_scenarios()]
    for path in paths:
        path.write_text(bad_scenarios()[path.name], "utf-8")
    return sorted(paths)


if __name__ == "__main__":
    if sys.argv[1] not in bad_scenarios():
        raise SystemExit(unknown_name("bad scenario", sys.argv[1], bad_scenarios()))
    sys.stdout.write(bad_scenarios()[sys.argv[1]])
