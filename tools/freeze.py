"""The suite of the version in pyproject.toml, written by `python -m tools.freeze`.

Before 1.0 `make docs` keeps the suite 1.0 at what there is. From then on a suite is never
rewritten: a new minor version gets a file of its own.
"""

import sys
import tomllib
from pathlib import Path

from harness.judge.rules.discovery import every_rule
from harness.protocol.spec.loading import load_book
from harness.protocol.suites import SUFFIX
from harness.scenario.bundled import bundled_ids

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "harness/protocol/suites"


def suite_text() -> str:
    """Return the ids of all rules, bundled scenarios and requirements, a line each."""
    requirements = sorted(requirement.id for requirement in load_book().requirements)
    lines = [f"rule {one}" for one in sorted(every_rule())]
    lines += [f"scenario {one}" for one in sorted(bundled_ids())]
    lines += [f"requirement {one}" for one in requirements]
    return "\n".join(lines) + "\n"


def suite_in_work() -> Path | None:
    """Return the file of the suite that is not out yet, None from version 1.0.0 on."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    return FOLDER / f"1.0{SUFFIX}" if version.startswith("0.") else None


def main() -> int:
    """Write the suite of the current version; return 1 if there is one already."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    file = suite_in_work() or FOLDER / f"{'.'.join(version.split('.')[:2])}{SUFFIX}"
    if file.exists() and file != suite_in_work():
        sys.stderr.write(f"{file.name} is frozen; raise the minor version in pyproject.toml\n")
        return 1
    file.write_text(suite_text(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
