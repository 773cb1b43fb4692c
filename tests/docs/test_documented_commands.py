"""The commands of the documents run, and print what the documents say they print.

A block `sh run` runs in the order of its page, in a folder that has the checkout's fixtures and
scenarios; a `text` block after it must be found in what was printed, `…` standing for anything and
numbers for any number. A YAML block that begins with a file's name is that file.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from markdown_pages import PAGES, ROOT, Block, blocks

pytestmark = [pytest.mark.slow, pytest.mark.socket]

_BLOCK_BOUND = 120
"""Seconds for a block: one judges a server with every scenario, on a machine under load."""
_PAGE_BOUND = 400
WITH_COMMANDS = [page for page in PAGES if any(block.runnable for block in blocks(page))]


@dataclass
class Reader:
    """Someone who does what a page says, from the top."""

    folder: Path
    printed: str | None = None
    wrong: list[str] = field(default_factory=list[str])

    def read(self, block: Block) -> None:
        """Do what the block asks for."""
        named = re.match(r"# (\S+\.(?:yaml|toml))\n", block.body)
        if named:
            path = self.folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.body, "utf-8")
        elif block.runnable:
            self.run(block)
        elif block.language == "text" and self.printed is not None:
            self.compare(block)
        else:
            self.printed = None

    def run(self, block: Block) -> None:
        """Run a block as one script."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.body],
            cwd=self.folder,
            env=_environment(self.folder.parent),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=_BLOCK_BOUND,
            check=False,
        )
        self.printed = done.stdout
        if done.returncode != block.status:
            said = f"exit status {done.returncode}, not {block.status}:\n{done.stdout}"
            self.wrong.append(f"{block.place}: {said}")

    def compare(self, block: Block) -> None:
        """Find the lines of an excerpt, in order, in what was printed last."""
        rest = iter((self.printed or "").splitlines())
        for number, line in enumerate(block.body.splitlines()):
            if line.strip() in ("", "…"):
                continue
            if not any(_pattern(line).fullmatch(printed.rstrip()) for printed in rest):
                place = f"{block.page.relative_to(ROOT)}:{block.line + number}"
                self.wrong.append(f"{place}: not printed: {line}\n{self.printed}")
                return


def _pattern(line: str) -> re.Pattern[str]:
    text = re.escape(line.rstrip()).replace("…", ".*")
    text = re.sub(r"(=){3,}", "=+", text)
    text = re.sub(r"(\\ ){2,}", r"\\s+", text)
    return re.compile(re.sub(r"\d+(\\\.\d+)?", r"\\d+(\\.\\d+)?", text))


def _environment(home: Path) -> dict[str, str]:
    commands = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    (home / "tmp").mkdir(exist_ok=True)
    # The folder must not look like one in the system's temporary folder: traces go elsewhere then.
    added = {"TMPDIR": str(home / "tmp"), "HOME": str(home), "AGENT_HOME": str(home / "agent")}
    return {**kept, **added, "PATH": commands, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100"}


@pytest.mark.timeout(_PAGE_BOUND)
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_the_commands_of_a_page_do_what_it_says(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("fixtures", "scenarios"):
        (folder / name).symlink_to(ROOT / name)
    reader = Reader(folder)
    for block in blocks(page):
        reader.read(block)
    assert not reader.wrong, "\n".join(reader.wrong)


def test_the_pages_for_newcomers_have_commands() -> None:
    assert {"README.md", "CONTRIBUTING.md"} <= {page.name for page in WITH_COMMANDS}
    assert sum(block.runnable for block in blocks(ROOT / "README.md")) >= 6


def test_an_excerpt_that_was_not_printed_is_noticed(tmp_path: Path) -> None:
    reader = Reader(tmp_path, printed="rules: 48 (48 PASS)\nverdict: GREEN\n")
    for text, wrong in (
        ("rules: 7 (7 PASS)\n…\nverdict: GREEN\n", 0),
        ("verdict: RED\n", 1),
        ("verdict: GREEN\nrules: 48 (48 PASS)\n", 2),
    ):
        reader.compare(Block(ROOT / "README.md", 1, "text", text))
        assert len(reader.wrong) == wrong
