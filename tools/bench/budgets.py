"""Performance budgets, in the order of the printed table.

To add a row, add a `Budget` here and a measurement that returns a cell with its `key`. A row
without a cell prints "not measured".
"""

from dataclasses import dataclass
from typing import Literal

from tools.bench.stats import Cell, Figure


@dataclass(frozen=True, slots=True)
class Budget:
    """One row of the table. `limit` is None if the figure has no budget."""

    key: str
    title: str
    limit: float | None
    unit: str
    better: Literal["lower", "higher"] = "lower"

    def verdict(self, cell: Cell) -> str:
        """Return "within" or "over" (for a rate: below it), "" if the cell cannot be judged."""
        if self.limit is None or not isinstance(cell, Figure) or not cell.comparable:
            return ""
        good = cell.value <= self.limit if self.better == "lower" else cell.value >= self.limit
        return "within" if good else "over"


BUDGETS = (
    Budget("first-answer", "spawn to first answer", 80, "ms"),
    Budget("first-turn", "spawn to end of first turn", 130, "ms"),
    Budget("start-cpu", "CPU by then", None, "ms"),
    Budget("exec-first", "agent exec: spawn to first event", 150, "ms"),
    Budget("exec-end", "the same, to the end of the process", None, "ms"),
    Budget("exec-cpu", "CPU of that", None, "ms"),
    Budget("turn-p50", "trivial turn, p50", 1.4, "ms"),
    Budget("turn-cpu", "trivial turn, CPU", 1.2, "ms"),
    Budget("turns", "turns over 20 threads", 1000, "turns/s", "higher"),
    Budget("deltas", "5,000-delta stream", 60_000, "notifications/s", "higher"),
    Budget("thread-list", "thread/list of 25 among 10,000", 3, "ms"),
    Budget("resume", "thread/resume of 1,000 turns", 100, "ms"),
    Budget("fork", "thread/fork of 1,000 turns", 100, "ms"),
    Budget("thread-list-many", "the same among 100,000", 3, "ms"),
    Budget("thread-list-filters", "there: the slowest filter", 3, "ms"),
    Budget("thread-list-search", "there: the slowest search", 3, "ms"),
    Budget("thread-list-last", "there: the last page, by update", 3, "ms"),
    Budget("thread-list-first", "the first list of a home of 10,000", None, "ms"),
    Budget("thread-list-found", "the first of the next server there", None, "ms"),
    Budget("thread-list-beside", "slowest request beside the first", None, "ms"),
    Budget("idle", "idle memory", 40, "MiB"),
    Budget("per-thread", "memory per loaded thread", 20, "KiB"),
    Budget("second-turn", "a second client, of a turn's CPU (unix)", 10, "%"),
    Budget("second-deltas", "a second client, of a stream's (unix)", 10, "%"),
    Budget("stuck-deltas", "one that reads nothing, the same (unix)", 10, "%"),
    Budget("second-turn-ws", "a second client, of a turn's CPU (ws)", 10, "%"),
    Budget("second-deltas-ws", "a second client, of a stream's (ws)", 10, "%"),
    Budget("stuck-deltas-ws", "one that reads nothing, the same (ws)", 10, "%"),
    Budget("dialect-turn", "a dialect, of a trivial turn's p50", 15, "%"),
    Budget("dialect-turn-cpu", "a dialect, of a turn's CPU", None, "%"),
    Budget("turn-cpu-unix", "trivial turn over unix, CPU", None, "ms"),
    Budget("turn-cpu-ws", "trivial turn over ws, CPU", None, "ms"),
    Budget("deltas-unix", "5,000-delta stream over unix", None, "notifications/s", "higher"),
    Budget("deltas-ws", "5,000-delta stream over ws", None, "notifications/s", "higher"),
    Budget("suite", "the session suite", 15, "s"),
    Budget("suite-cpu", "its CPU", 30, "s"),
    Budget("suite-starts", "servers that it starts", 60, "starts"),
    Budget("scenario", "one trivial scenario", None, "ms"),
    Budget("overhead", "overhead of one of 500", 20, "ms"),
    Budget("races", "races", 180, "s"),
    Budget("live-mutation", "live mutation", 180, "s"),
    Budget("rules", "all rules, delta-heavy trace", 140_000, "frames/s", "higher"),
    Budget("rules-memory", "rules, memory kept", 53, "bytes/frame"),
    Budget("fuzzing", "fuzzing, all rules on", 250, "requests/s", "higher"),
)
