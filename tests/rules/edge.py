"""Edge cases of rules: legal conversations that a rule must pass, illegal ones it must fail.

Each module `edges_*.py` lists its own as LEGAL and ILLEGAL; nothing has to be registered. Good
conversations (`good_*.py`) obey SHOULD rules too, legal ones only MUST rules.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.judge.verdict import Level
from harness.trace.trace import End, Trace
from tests.rules.traces import Talk


@dataclass(frozen=True)
class Legal:
    """A legal conversation that `rule` once failed, or could fail; no MUST rule may fail it.

    `name` describes the server's behaviour, in words with hyphens. `hints` are the rules that must
    fail it at SHOULD or INFO; no other rule may fail it at SHOULD.
    """

    rule: str
    name: str
    talk: Callable[[], Talk]
    hints: frozenset[str] = frozenset()
    end: End = End.QUIESCENT

    def trace(self) -> Trace:
        """The conversation as a trace."""
        return self.talk().trace(self.end)


@dataclass(frozen=True)
class Illegal:
    """An illegal conversation that no rule found once; `rule` must fail it at `level`.

    `also` are other rules that fail it too, at MUST or SHOULD, for the same reason.
    """

    rule: str
    name: str
    talk: Callable[[], Talk]
    level: Level = Level.MUST
    also: frozenset[str] = field(default_factory=frozenset[str])
    end: End = End.QUIESCENT

    def trace(self) -> Trace:
        """The conversation as a trace."""
        return self.talk().trace(self.end)


def _listed(name: str) -> list[Legal | Illegal]:
    found: list[Legal | Illegal] = []
    for path in sorted(Path(__file__).parent.glob("edges_*.py")):
        found += getattr(importlib.import_module(f"tests.rules.{path.stem}"), name)
    return found


def legal() -> list[Legal]:
    """Return the legal conversations of all modules."""
    return [one for one in _listed("LEGAL") if isinstance(one, Legal)]


def illegal() -> list[Illegal]:
    """Return the illegal conversations of all modules."""
    return [one for one in _listed("ILLEGAL") if isinstance(one, Illegal)]
