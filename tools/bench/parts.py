"""Parts that can be measured on their own, and the command line that chooses them."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from tools.bench import clients, dialects, lists, measures, one_shot, suite
from tools.bench.budgets import BUDGETS, Budget

INSIDE = "--inside"
"""Option for the process that already runs in a network namespace with loopback only."""
SERVER, REAL, START, WHERE = "server", "real", "start", "where"


@dataclass(frozen=True, slots=True)
class Part:
    """A part: its name, a title for `--help`, and the keys of its rows."""

    name: str
    title: str
    keys: tuple[str, ...]


_OF_SERVERS = tuple(key for keys in measures.KEYS for key in keys)
PARTS = (
    Part(SERVER, "the reference server", _OF_SERVERS),
    Part(REAL, "the same of the real servers that make real has installed", _OF_SERVERS),
    Part(START, "of all these servers, from spawn to the first turn's end", measures.START_KEYS),
    Part("exec", "agent exec, from spawn to its first event and its end", one_shot.KEYS),
    Part("resume", "resuming a thread of 1,000 turns", ("resume",)),
    Part("fork", "forking one", ("fork",)),
    Part("lists", "thread/list among many stored threads (a minute)", lists.KEYS),
    Part("clients", "what a second client of a thread costs, over sockets", clients.KEYS),
    Part("dialect", "what a dialect adds to a turn", dialects.KEYS),
    Part("rules", "all rules over one long trace", ("rules", "rules-memory")),
    Part("suite", "the session suite on the reference server", suite.KEYS),
    Part("fuzzing", "generated requests with all rules on", ("fuzzing",)),
    Part("races", "all races on the reference server (minutes)", ("races",)),
    Part("mutation", "each fault at work on the reference server (minutes)", ("live-mutation",)),
    Part("overhead", "what the harness adds to a scenario", ("overhead",)),
    Part(WHERE, "a table of its own: where the time of the session suite goes (minutes)", ()),
)


def parse_arguments(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Return the parts to measure (all if none is named) and whether `--inside` is given.

    Exits for `--help`, and with status 2 for an unknown part.
    """
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench",
        description="Measure the budgets of the design; all parts take some fifteen minutes.",
        epilog="parts:\n" + "\n".join(f"  {part.name:10}{part.title}" for part in PARTS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="what to measure; all by default")
    parser.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    for name in options.parts:
        if name not in names:
            parser.error(f"there is no part {name!r}; there are: {', '.join(names)}")
    return [name for name in names if name in options.parts or not options.parts], options.inside


def rows(parts: Sequence[str]) -> list[Budget]:
    """Return the rows of the table for these parts."""
    keys = {key for part in PARTS if part.name in parts for key in part.keys}
    return [budget for budget in BUDGETS if budget.key in keys]
