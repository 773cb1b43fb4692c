"""The examples of docs/scenarios.md, which `python -m tools.examples FOLDER` writes as files.

`make real` plays all of them on the real servers; a test plays those without a row in `OWED` on
the reference server.
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
# Folder of the files; their scenario ids begin with it.
AREA = "documented"
# Examples that the reference server cannot play yet, each with the reason.
OWED: dict[str, str] = {}

_EXAMPLE = re.compile(r"^```yaml\n(title: ([^\n]*)\n.*?)^```$", re.M | re.S)


def examples() -> dict[str, str]:
    """Return the text of each complete scenario on the page by name; of a family, of each row."""
    texts: dict[str, str] = {}
    for text, title in _EXAMPLE.findall(PAGE.read_text("utf-8")):
        name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
        texts |= _rows(name, text) if is_family(text) else {name: text}
    return texts


def is_family(text: str) -> bool:
    """Return whether an example is a family: a scenario template with a table of rows."""
    return "\nrows:\n" in text


def _rows(name: str, text: str) -> dict[str, str]:
    """Return the scenario text of each row of a family, by file name."""
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
    """Replace the folder's subfolder AREA by files of all examples; return their paths."""
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
