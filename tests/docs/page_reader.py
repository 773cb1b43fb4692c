"""Reader that executes the code blocks of a page of the docs in order.

A block `sh run` is run, with `times=2` twice; the lines of a `text` block after it must occur in
the output, where `…` matches anything and a number any number. A block that begins with the name
of a YAML or TOML file in a comment is written to that file.
"""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from markdown_pages import ROOT, Block, blocks

BLOCK_BOUND = 120
"""Maximum seconds of a block, on a machine under load; one plays every scenario on a server."""
PAGE_BOUND = 400


@dataclass
class Reader:
    """Reader of pages; `environment` is that of its commands, `wrong` collects the failures."""

    folder: Path
    environment: Mapping[str, str]
    printed: str | None = None
    wrong: list[str] = field(default_factory=list[str])

    def read_page(self, page: Path) -> None:
        """Execute all blocks of a page."""
        for block in blocks(page):
            self.read(block)

    def read(self, block: Block) -> None:
        """Execute one block: write its file, run it, or compare it with the output."""
        named = re.match(r"# (\S+\.(?:yaml|toml))\n", block.body)
        if named:
            path = self.folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.body, "utf-8")
        elif block.runnable:
            for _ in range(block.times):
                self.run(block)
        elif block.language == "text" and self.printed is not None:
            self.compare(block)
        else:
            self.printed = None

    def run(self, block: Block) -> None:
        """Run a block as one script and keep its output; record an unexpected status."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.body],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=BLOCK_BOUND,
            check=False,
        )
        self.printed = done.stdout
        if done.returncode != block.status:
            said = f"exit status {done.returncode}, not {block.status}:\n{done.stdout}"
            self.wrong.append(f"{block.place}: {said}")

    def compare(self, block: Block) -> None:
        """Find the lines of an excerpt, in order, in the last output; record a missing line."""
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
