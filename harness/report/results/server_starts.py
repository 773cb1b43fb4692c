"""Reasons why a run started each process of the server under test."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class StartReason(StrEnum):
    """Reasons why no running process could be used."""

    FIRST = "first process"
    FRESH = "server: fresh"
    FAULTS = "faults"
    CONFIG = "own config"
    MCP_SERVERS = "own MCP servers"
    CLIENT_NAME = "own client name"
    LISTENER = "first listener"
    RESTART = "restart"
    KILLED = "restart after a kill"
    CONNECTION_CLOSED = "after the client closed the connection"
    FAILED = "after a failure"
    EXITED = "after an exit unasked"
    UNUSABLE = "after a failed sanity turn"
    TURN_MAY_RUN = "after a turn that may still run"
    MADE_ROOM = "ended to make room"


@dataclass(frozen=True, slots=True)
class ServerStart:
    """One start of a server: its reason, and its scenario."""

    reason: StartReason
    scenario: str


def by_reason(starts: Sequence[ServerStart]) -> Iterator[tuple[StartReason, list[str]]]:
    """Yield the scenarios of each reason, the most frequent reason first."""
    scenarios = {reason: list(_scenarios_of(starts, reason)) for reason in StartReason}
    for reason in sorted(scenarios, key=lambda item: -len(scenarios[item])):
        if scenarios[reason]:
            yield reason, scenarios[reason]


def _scenarios_of(starts: Iterable[ServerStart], reason: StartReason) -> Iterator[str]:
    return (start.scenario for start in starts if start.reason is reason)
