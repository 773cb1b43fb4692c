"""The examples of docs/scenarios.md as files: `python -m tools.examples FOLDER`.

`make real` plays all of them on the real servers, a test plays those that the reference server can.
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

from harness.scenario.families import load_family
from harness.scenario.identity import FAMILY
from harness.scenario.scenario_text import scenario_text

PAGE = Path(__file__).resolve().parents[1] / "docs" / "scenarios.md"
# The folder of the files, and so the beginning of their ids.
AREA = "documented"
# What the reference server does not offer yet, and the part of the project that will: approvals
# and commands (C), races and failures (D), threads and persistence (E), command line and SDKs (F).
OWED: dict[str, str] = {}

_EXAMPLE = re.compile(r"^```yaml\n(title: ([^\n]*)\n.*?)^```$", re.M | re.S)


def examples() -> dict[str, str]:
    """Name -> the text of each whole scenario of the page, in its order; of a family each row's."""
    texts: dict[str, str] = {}
    for text, title in _EXAMPLE.findall(PAGE.read_text("utf-8")):
        name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
        texts |= _rows(name, text) if is_family(text) else {name: text}
    return texts


def is_family(text: str) -> bool:
    """Return whether an example is a table of scenarios."""
    return "\nrows:\n" in text


def _rows(name: str, text: str) -> dict[str, str]:
    """Return the scenarios of a family, each as a file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{name}{FAMILY}")
        path.write_text(text, "utf-8")
        family = load_family(path)
    return {
        f"{name}-{row.replace('/', '-')}": scenario_text(
            family.scenario(row).value, family.describe_row(row)
        )
        for row in family.names()
    }


def write(folder: Path) -> list[Path]:
    """Write every example below the folder, in place of those of an earlier run."""
    area = folder / AREA
    shutil.rmtree(area, ignore_errors=True)
    area.mkdir(parents=True)
    paths: list[Path] = []
    for name, text in examples().items():
        paths.append(area / f"{name}.scenario.yaml")
        paths[-1].write_text(text, "utf-8")
    return paths


if __name__ == "__main__":
    write(Path(sys.argv[1]))
