"""Test cases of rules: each rule has three small traces."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

from harness.judge.verdict import Level
from harness.trace.trace import Trace
from tests.rules.traces import Talk


class Written(Protocol):
    """A builder of a conversation, on any surface."""

    def trace(self) -> Trace:
        """Return the conversation as a trace."""
        ...


@dataclass(frozen=True)
class Found:
    """An expected violation: its subject, the seqs of its frames, its level."""

    subject: str
    seqs: tuple[int, ...]
    level: Level = Level.MUST


@dataclass(frozen=True)
class Case:
    """One rule with a trace that it passes (with these witnesses), one that it fails (with these
    violations), and one that gives it nothing to judge."""

    rule: str
    good: Written
    witnesses: tuple[str, ...]
    bad: Written
    found: tuple[Found, ...]
    not_exercised: Written

    def traces(self) -> tuple[Trace, Trace, Trace]:
        """Return the traces good, bad and not exercised."""
        return self.good.trace(), self.bad.trace(), self.not_exercised.trace()


def opened() -> Talk:
    """Return a talk with a started thread: seqs 0 to 2."""
    return Talk().start_thread()


def running() -> Talk:
    """Return a talk with a thread and a running turn with the user's message: seqs 0 to 8."""
    return opened().start_turn()


def silent() -> Talk:
    """Return a talk with only a rejected request."""
    return Talk().asks("thread/read", threadId="thr_9").refuses()


def all_cases() -> Iterator[Case]:
    """Yield the cases of every module `cases_*.py` of this folder."""
    for path in sorted(Path(__file__).parent.glob("cases_*.py")):
        yield from import_module(f"tests.rules.{path.stem}").CASES
