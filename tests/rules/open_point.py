"""Servers that chose otherwise than we did, one for each point that the text leaves open.

A point is tried by a conversation of a server that chose otherwise; where there can be none, a
reason stands instead.
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
    """A conversation with a server that chose otherwise at an open point.

    `does` says what it does, after "the server".
    """

    point: str
    does: str
    talk: Callable[[], Written]

    def trace(self) -> Trace:
        """The conversation as a trace."""
        return self.talk().trace()


class Why(StrEnum):
    """Reasons why a conversation cannot show another choice."""

    NO_RULE = "no rule judges this document yet"
    NOT_ON_THE_WIRE = "another choice looks the same on the wire"
    NOTHING_LEFT = "whatever a server could choose is accepted in so many words by another point"


@dataclass(frozen=True)
class Untried:
    """A point for which there is no conversation; `because` says more than `why`."""

    point: str
    why: Why
    because: str


def otherwise() -> list[Otherwise]:
    """Every conversation, of all modules."""
    return [one for one in _listed("OTHERWISE") if isinstance(one, Otherwise)]


def untried() -> list[Untried]:
    """Every point without a conversation, of all modules."""
    return [one for one in _listed("UNTRIED") if isinstance(one, Untried)]


def _listed(name: str) -> list[Otherwise | Untried]:
    found: list[Otherwise | Untried] = []
    for path in sorted(Path(__file__).parent.glob("open_*.py")):
        if path.stem != "open_point":
            module = importlib.import_module(f"tests.rules.{path.stem}")
            found += getattr(module, name, [])
    return found
