"""Running `harness run`, and pytest as a user does, each with its own settings and plugins."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.processes import run_warm

from .judging import NOT_NEEDED as SLOW

NOT_NEEDED = [name for name in SLOW if name != "cacheprovider"]
SCENARIO = """
title: A greeting is answered
covers: [turn.completes]
model: [{reply: [{message: "hello"}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: "hello", as: u}
  - wait: {turn: u, status: completed}
"""


@dataclass(frozen=True, slots=True)
class Told:
    """The exit status and the output of a run."""

    status: int
    text: str

    @property
    def score(self) -> str:
        """Return the counts of scenario verdicts, as `1 PASS`; "" if none was played."""
        found = re.search(r"^scenarios: \d+ \((.*)\)", self.text, re.M)
        return found[1] if found else ""

    @property
    def tally(self) -> dict[str, int]:
        """Return the counts of pytest's summary line (`2 failed, 50 passed`) by outcome."""
        last = [line for line in self.text.splitlines() if re.search(r" in [\d.]+s", line)][-1]
        counts = re.findall(r"(\d+) ([a-z]+)", last.split(" in ")[0])
        return {what: int(count) for count, what in counts}

    def line(self, begin: str) -> str:
        """Return the only line that begins with `begin`; fail if there is not exactly one."""
        (line,) = (line for line in self.text.splitlines() if line.startswith(begin))
        return line


def harness_run(*words: str, server: str, folder: Path) -> Told:
    """Run `harness run --server-cmd SERVER …` to its end."""
    return _told("harness", "run", "--server-cmd", server, *words, folder=folder)


def own_pytest(*words: str, server: str, folder: Path) -> Told:
    """Run `pytest --server-cmd=SERVER …` without slow plugins and assertion rewriting."""
    few = [word for plugin in NOT_NEEDED for word in ("-p", f"no:{plugin}")]
    line = ["--assert=plain", "-q", *few, f"--server-cmd={server}", *words]
    return _told("pytest", *line, folder=folder)


def _told(program: Literal["harness", "pytest"], *words: str, folder: Path) -> Told:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env = {**kept, "NO_COLOR": "1", "COLUMNS": "100"}
    said = run_warm(program, *words, cwd=folder, env=env, together=True)
    return Told(said.status, said.out)


def scenario(path: Path, text: str = SCENARIO) -> Path:
    """Write a scenario file and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
