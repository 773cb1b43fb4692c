"""The history of runs in one SQLite file: verdicts over time, flaky and slow scenarios."""

import sqlite3
from collections import defaultdict
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

from harness.errors import HarnessError
from harness.report.results.report import Report, is_red

FILE: Final = "history.sqlite"
MAX_RUNS: Final = 200
MAX_RUNS_PLOTTED: Final = 40
MAX_SCENARIOS_LISTED: Final = 12
LOCK_SECONDS: Final = 5.0
_JUDGED: Final = ("PASS", "FAIL", "KNOWN", "ERROR")
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY, started TEXT, target TEXT, release TEXT,
  verdict TEXT, seconds REAL, broken INTEGER, passed INTEGER, failed INTEGER, total INTEGER);
CREATE TABLE IF NOT EXISTS plays (run TEXT, scenario TEXT, verdict TEXT, seconds REAL,
  runs INTEGER, failed_runs INTEGER, PRIMARY KEY (run, scenario)) WITHOUT ROWID;
"""


class HistoryError(HarnessError):
    """A history that cannot be read or written; the text says what to do."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run: its verdict in a word, the number of broken rules, and counts of scenarios."""

    run: str
    started: str
    target: str
    release: str
    verdict: str
    seconds: float
    broken: int
    passed: int
    failed: int
    total: int


@dataclass(frozen=True, slots=True)
class ScenarioRow:
    """A scenario on one target over its last runs, oldest first; `changes` of its verdict."""

    scenario: str
    target: str
    verdicts: tuple[str, ...]
    seconds: tuple[float, ...]
    changes: int

    @property
    def median_seconds(self) -> float:
        """Return the median duration of its plays."""
        return median(self.seconds)


@dataclass(frozen=True, slots=True)
class History:
    """`runs` by target and release, oldest first; the flakiest and the slowest scenarios."""

    runs: dict[tuple[str, str], list[RunRow]]
    flaky: list[ScenarioRow]
    slowest: list[ScenarioRow]


@contextmanager
def _open(path: Path) -> Generator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(path, timeout=LOCK_SECONDS)) as connection:
            # A history lost with the power is no loss; waiting for the disk at each run is.
            connection.execute("PRAGMA synchronous=OFF")
            connection.executescript(_SCHEMA)
            with connection:
                yield connection
    except sqlite3.Error as error:
        advice = "wait for the process that uses it" if "locked" in str(error) else "delete it"
        raise HistoryError(
            f"the history {path} cannot be used: {error}; {advice}, or set HARNESS_HISTORY=off"
        ) from error


def add_run(path: Path, run: str, report: Report) -> None:
    """Add a finished run, and drop the oldest beyond `MAX_RUNS`. Raises `HistoryError`."""
    verdicts = [str(one.verdict) for one in report.scenarios]
    word = "ERROR" if report.is_error else "RED" if report.red else "GREEN"
    broken = sum(is_red(rule, strict=report.strict) for rule in report.rules)
    wrong = verdicts.count("FAIL") + verdicts.count("ERROR")
    row = (run, report.started, report.target, report.release, word, report.took, broken)
    plays = [
        (run, one.id, str(one.verdict), one.seconds, one.runs, one.failed_runs)
        for one in report.scenarios
        if str(one.verdict) in _JUDGED
    ]
    with _open(path) as connection:
        connection.execute(
            "INSERT OR REPLACE INTO runs VALUES (?,?,?,?,?,?,?,?,?,?)",
            (*row, verdicts.count("PASS"), wrong, len(verdicts)),
        )
        connection.executemany("INSERT OR REPLACE INTO plays VALUES (?,?,?,?,?,?)", plays)
        old = "SELECT run FROM runs ORDER BY started DESC, run DESC LIMIT -1 OFFSET ?"
        for table in ("plays", "runs"):
            connection.execute(f"DELETE FROM {table} WHERE run IN ({old})", (MAX_RUNS,))


def read_history(path: Path) -> History:
    """Return the history, empty if there is no file. Raises `HistoryError`."""
    if not path.exists():
        return History({}, [], [])
    with _open(path) as connection:
        rows = connection.execute("SELECT * FROM runs ORDER BY started, run").fetchall()
        plays = connection.execute(
            "SELECT target, scenario, plays.verdict, plays.seconds, failed_runs > 0 AND "
            "failed_runs < runs FROM plays JOIN runs USING (run) ORDER BY started, run"
        ).fetchall()
    runs: dict[tuple[str, str], list[RunRow]] = defaultdict(list)
    for row in (RunRow(*values) for values in rows):
        runs[row.target, row.release].append(row)
    by_scenario: dict[tuple[str, str], list[tuple[str, float, bool]]] = defaultdict(list)
    for target, scenario, verdict, seconds, is_mixed in plays:
        by_scenario[target, scenario].append((verdict, seconds, bool(is_mixed)))
    scenarios = [_scenario(key, played[-MAX_RUNS_PLOTTED:]) for key, played in by_scenario.items()]
    flaky = sorted((one for one in scenarios if one.changes > 1), key=lambda one: -one.changes)
    slowest = sorted(scenarios, key=lambda one: -one.median_seconds)
    return History(
        {key: of_target[-MAX_RUNS_PLOTTED:] for key, of_target in runs.items()},
        flaky[:MAX_SCENARIOS_LISTED],
        slowest[:MAX_SCENARIOS_LISTED],
    )


def last_seconds(path: Path, target: str) -> dict[str, float]:
    """Return the seconds of the last play of each scenario on a target; {} without a history."""
    if not path.exists():
        return {}
    query = (
        "SELECT scenario, plays.seconds, max(run) FROM plays JOIN runs USING (run) "
        "WHERE target = ? AND plays.seconds > 0 GROUP BY scenario"
    )
    try:
        with _open(path) as history:
            return {scenario: seconds for scenario, seconds, _ in history.execute(query, (target,))}
    except HistoryError:
        return {}


def _scenario(key: tuple[str, str], played: list[tuple[str, float, bool]]) -> ScenarioRow:
    verdicts = tuple(verdict for verdict, *_ in played)
    changes = sum(one != other for one, other in pairwise(verdicts))
    # A play that was repeated within one run, with both outcomes, went there and back.
    changes += 2 * sum(is_mixed for *_, is_mixed in played)
    return ScenarioRow(key[1], key[0], verdicts, tuple(one[1] for one in played), changes)
