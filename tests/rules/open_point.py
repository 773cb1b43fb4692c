"""Servers with another choice than ours, one for each open point.

Each point has a conversation with such a server, or a reason why there can be none.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from harness.trace.trace import Trace
from tests.rules.case import Written


@dataclass(frozen=True)
class Otherwise:
    """A conversation with a server that made another choice at an open point.

    `does` describes its behaviour, as the end of a sentence that begins with "the server".
    """

    point: str
    does: str
    talk: Callable[[], Written]

    def trace(self) -> Trace:
        """Return the conversation as a trace."""
        return self.talk().trace()


class Why(StrEnum):
    """Reasons why a conversation cannot show another choice."""

    NO_RULE = "no rule judges this document yet"
    NOT_ON_THE_WIRE = "another choice looks the same on the wire"
    NOTHING_LEFT = "whatever a server could choose is accepted in so many words by another point"


@dataclass(frozen=True)
class Untried:
    """An open point without a conversation; `because` explains `why`."""

    point: str
    why: Why
    because: str


def otherwise() -> list[Otherwise]:
    """Return the conversations of all modules."""
    return [one for one in _listed("OTHERWISE") if isinstance(one, Otherwise)]


def untried() -> list[Untried]:
    """Return the points without a conversation of all modules."""
    return [one for one in _listed("UNTRIED") if isinstance(one, Untried)]


def _listed(name: str) -> list[Otherwise | Untried]:
    found: list[Otherwise | Untried] = []
    for path in sorted(Path(__file__).parent.glob("open_*.py")):
        if path.stem != "open_point":
            module = importlib.import_module(f"tests.rules.{path.stem}")
            found += getattr(module, name, [])
    return found
