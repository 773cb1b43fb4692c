"""Line counts of each room beside their budgets, printed by `python -m tools.weight`.

`--budget` fails if a room exceeds its row of tools/weight.yaml; raise the row by hand in the commit
that needs it, which says why. `--write` lowers rows to the present counts.
"""

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
BUDGET = ROOT / "tools" / "weight.yaml"
HEADER = """\
# Lines of Python that each room may have, and files of the whole repository. Raise a row in the
# commit that needs it, and say there why; `python -m tools.weight --write` lowers rows.
"""
FILES = "files of the repository"
STEP = 100
"""Rows are rounded up to a multiple of this, so that small growth needs no new row."""
SPLIT = ("harness", "reference_server", "tests")
"""Folders whose subfolders are rooms of their own."""


def room_of(path: str) -> str:
    """Return the room of a file, given by its path in the repository."""
    first, *rest = path.split("/")
    if not rest:
        return "root"
    return f"{first}/{rest[0]}" if first in SPLIT and len(rest) > 1 else first


def weigh(files: Iterable[Path], root: Path = ROOT) -> dict[str, int]:
    """Return the lines of Python of each room, and the number of all files as `FILES`."""
    lines: Counter[str] = Counter()
    for path in files:
        lines[FILES] += 1
        if path.suffix == ".py":
            room = room_of(path.relative_to(root).as_posix())
            lines[room] += len(path.read_text("utf-8").splitlines())
    return dict(sorted(lines.items()))


def tracked_files() -> list[Path]:
    """Return the existing files that git tracks or would add."""
    output = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    return [path for name in output.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def excesses(weights: Mapping[str, int], budget: Mapping[str, int]) -> list[str]:
    """Return a message for each room that exceeds its budget or has no row."""
    return [
        f"{room}: {weight}, but its row of tools/weight.yaml has {budget[room]}"
        if room in budget
        else f"{room}: {weight}, but tools/weight.yaml has no row for it"
        for room, weight in weights.items()
        if weight > budget.get(room, 0)
    ]


def lower_budget(weights: Mapping[str, int], budget: Mapping[str, int]) -> dict[str, int]:
    """Return the budget with rows lowered to the weights, rounded up, without removed rooms."""
    return {
        room: min(row, -(-weights[room] // STEP) * STEP)
        for room, row in budget.items()
        if room in weights
    }


def table(weights: Mapping[str, int], budget: Mapping[str, int]) -> str:
    """Return the printed table of weights and budgets."""
    width = max(map(len, weights))
    rows = [f"{room:{width}}  {weights[room]:7}  {budget.get(room, 0):7}" for room in weights]
    total = sum(weight for room, weight in weights.items() if room != FILES)
    return "\n".join(
        [f"{'room':{width}}    lines   budget", *rows, f"{'in all':{width}}  {total:7}"]
    )


def budget_rows() -> dict[str, int]:
    """Return the budget of each room."""
    rows: dict[str, Any] = yaml.safe_load(BUDGET.read_text("utf-8")) if BUDGET.exists() else {}
    return rows


def main(words: list[str]) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.weight")
    parser.add_argument("--budget", action="store_true", help="fail where a room exceeds its row")
    parser.add_argument("--write", action="store_true", help="lower rows to what is there")
    options = parser.parse_args(words)
    weights, budget = weigh(tracked_files()), budget_rows()
    if options.write:
        budget = lower_budget(weights, budget)
        BUDGET.write_text(HEADER + yaml.safe_dump(budget), "utf-8")
    if not options.budget:
        sys.stdout.write(f"{table(weights, budget)}\n")
        return 0
    excess_messages = excesses(weights, budget)
    if excess_messages:
        advice = "take away what is needless, or raise the row and say in the commit why"
        sys.stdout.write("".join(f"{line}\n" for line in [*excess_messages, advice]))
    return 1 if excess_messages else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
