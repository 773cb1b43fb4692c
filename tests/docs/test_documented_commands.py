"""The commands in the docs run, and their output is as the docs show it.

The README and the pages of docs/ are for whoever has the wheel alone: tests/wheel runs those (`make
wheel`), and here one of them, so that `make test` notices a command that is gone. How a page is
read says page_reader.
"""

import os
import sys
from pathlib import Path

import pytest
from markdown_pages import PAGES, ROOT, Block, blocks
from page_reader import PAGE_BOUND, Reader

pytestmark = [pytest.mark.slow, pytest.mark.socket]

WITH_COMMANDS = [page for page in PAGES if any(block.runnable for block in blocks(page))]
# The shortest page that plays a scenario.
SAMPLE = ROOT / "docs" / "servers.md"
HERE = [
    page
    for page in WITH_COMMANDS
    if page == SAMPLE or (page != ROOT / "README.md" and page.parent != ROOT / "docs")
]


def _environment(home: Path) -> dict[str, str]:
    commands = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    (home / "tmp").mkdir(exist_ok=True)
    # The folder must not look like one in the system's temporary folder: traces go elsewhere then.
    added = {"TMPDIR": str(home / "tmp"), "HOME": str(home), "AGENT_HOME": str(home / "agent")}
    return {**kept, **added, "PATH": commands, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100"}


@pytest.mark.timeout(PAGE_BOUND)
@pytest.mark.parametrize("page", HERE, ids=lambda page: page.name)
def test_the_commands_of_a_page_do_what_it_says(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("fixtures", "scenarios"):
        (folder / name).symlink_to(ROOT / name)
    reader = Reader(folder, _environment(tmp_path))
    reader.read_page(page)
    assert not reader.wrong, "\n".join(reader.wrong)


def test_the_pages_for_newcomers_have_commands() -> None:
    assert {"README.md", "CONTRIBUTING.md"} <= {page.name for page in WITH_COMMANDS}
    assert {"CONTRIBUTING.md", "servers.md"} <= {page.name for page in HERE}
    assert sum(block.runnable for block in blocks(ROOT / "README.md")) >= 5


def test_an_excerpt_that_was_not_printed_is_noticed(tmp_path: Path) -> None:
    reader = Reader(tmp_path, {}, printed="rules: 48 (48 PASS)\nverdict: GREEN\n")
    for text, wrong in (
        ("rules: 7 (7 PASS)\n…\nverdict: GREEN\n", 0),
        ("verdict: RED\n", 1),
        ("verdict: GREEN\nrules: 48 (48 PASS)\n", 2),
    ):
        reader.compare(Block(ROOT / "README.md", 1, "text", text))
        assert len(reader.wrong) == wrong
