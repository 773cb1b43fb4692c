"""Cases: three small traces with which each rule proves itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

from harness.judge.verdict import Level
from harness.trace.trace import Trace
from tests.rules.traces import Talk


class Written(Protocol):
    """A conversation that was written down, of whatever surface."""

    def trace(self) -> Trace:
        """The conversation as a trace."""
        ...


@dataclass(frozen=True)
class Found:
    """A violation that is expected: its subject, the seqs that prove it, its level."""

    subject: str
    seqs: tuple[int, ...]
    level: Level = Level.MUST


@dataclass(frozen=True)
class Case:
    """One rule: a trace it passes (with these subjects), one it fails, one it cannot judge."""

    rule: str
    good: Written
    witnesses: tuple[str, ...]
    bad: Written
    found: tuple[Found, ...]
    idle: Written

    def traces(self) -> tuple[Trace, Trace, Trace]:
        """Good, bad, not exercised."""
        return self.good.trace(), self.bad.trace(), self.idle.trace()


def opened() -> Talk:
    """A started thread: seqs 0 to 2."""
    return Talk().start_thread()


def running() -> Talk:
    """A started thread and a running turn with the user's message: seqs 0 to 8."""
    return opened().start_turn()


def silent() -> Talk:
    """A request that was refused, and nothing else."""
    return Talk().asks("thread/read", threadId="thr_9").refuses()


def all_cases() -> Iterator[Case]:
    """Yield the cases of every module `cases_*.py` of this folder."""
    for path in sorted(Path(__file__).parent.glob("cases_*.py")):
        yield from import_module(f"tests.rules.{path.stem}").CASES
