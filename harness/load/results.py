"""The results of a load: percentiles for each kind of operation, steps, and the last clean one."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from harness.load.judging import BrokenRule
from harness.load.model import ModelTimes
from harness.load.operations import Sample
from harness.trace.time_limits import percentile

PERCENTS: Final = (50, 95, 99, 100)
BUSY_CPU: Final = 0.9
"""Share of a core from which the generator is the bottleneck, not the server."""
_COLUMNS: Final = ("operation", "count", "failed", "p50", "p95", "p99", "max")
_FIRST_KINDS: Final = ("connect", "turn")
_MAX_ERRORS_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Row:
    """Times of one kind of operation in seconds; `percentiles` are as in `PERCENTS`."""

    name: str
    count: int
    failed: int
    percentiles: tuple[float, ...] | None

    @classmethod
    def of(cls, name: str, seconds: Sequence[float], failed: int = 0) -> "Row":
        """Return the row of succeeded operations, and the number of those that failed."""
        values = sorted(seconds)
        times = tuple(percentile(values, percent) for percent in PERCENTS) if values else None
        return cls(name, len(values) + failed, failed, times)

    def cells(self) -> list[str]:
        """Return the row as texts, times in milliseconds."""
        times = self.percentiles or ()
        shown = [f"{1000 * seconds:.0f} ms" for seconds in times] or ["-"] * len(PERCENTS)
        return [self.name, str(self.count), str(self.failed), *shown]


@dataclass(slots=True)
class Step:
    """Results of one number of users.

    `cpu` is the generator's share of a core, `lag` the 95th percentile of its lateness in seconds.
    `judged` conversations were judged, of which `broken` lists the broken rules.
    """

    users: int
    seconds: float
    rows: list[Row]
    errors: dict[str, int]
    judged: int
    broken: list[BrokenRule]
    cpu: float
    lag: float
    locust_page: str = ""

    @property
    def is_clean(self) -> bool:
        """Return whether nothing failed and no rule was broken."""
        return not self.errors and not self.broken and bool(self.turns)

    @property
    def turns(self) -> int:
        """Return the number of turns that succeeded."""
        return sum(row.count - row.failed for row in self.rows if row.name == "turn")

    def warning(self) -> str:
        """Return a warning if the generator, not the server, bounds the results; else ""."""
        if self.cpu < BUSY_CPU:
            return ""
        return (
            f"the generator used {self.cpu:.0%} of a core: it is the bottleneck, and times are too "
            "long; use several processes (locust --processes, docs/scale.md)"
        )

    def lines(self) -> Iterator[str]:
        """Yield the step for a terminal."""
        rate = self.turns / self.seconds
        yield f"{self.users} users, {self.seconds:.0f} s, {rate:.1f} turns/s"
        table = [list(_COLUMNS), *(row.cells() for row in self.rows)]
        widths = [max(len(cells[column]) for cells in table) for column in range(len(_COLUMNS))]
        for name, *cells in table:
            right = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
            yield "  " + "  ".join([name.ljust(widths[0]), *right])
        for words in self.notes():
            yield f"  {words}"

    def notes(self) -> Iterator[str]:
        """Yield sentences about the step."""
        for error, count in Counter(self.errors).most_common(_MAX_ERRORS_SHOWN):
            yield f"failed {count} times: {error}"
        yield f"{self.judged} conversations judged, {len(self.broken)} findings"
        counts = Counter(finding.rule for finding in self.broken)
        for finding in {finding.rule: finding for finding in reversed(self.broken)}.values():
            words = f"{finding.rule} ({counts[finding.rule]} times): {finding.text}"
            yield f"{words}; harness show {finding.recording}"
        yield f"generator: {self.cpu:.0%} of a core, late by {1000 * self.lag:.0f} ms (p95)"
        if warning := self.warning():
            yield f"warning: {warning}"


@dataclass(slots=True)
class LoadReport:
    """A load in steps of users, all on the same `server`."""

    server: str
    steps: list[Step] = field(default_factory=list[Step])

    @property
    def is_clean(self) -> bool:
        """Return whether every step is clean."""
        return bool(self.steps) and all(step.is_clean for step in self.steps)

    @property
    def conclusion(self) -> str:
        """Return up to how many users the server was correct."""
        users = 0
        for step in self.steps:
            if not step.is_clean:
                break
            users = step.users
        return f"correct under load up to {users} users" if users else "not correct under load"

    def text_lines(self) -> list[str]:
        """Return the report for a terminal."""
        lines = [self.server]
        for step in self.steps:
            lines += step.lines()
        return [*lines, self.conclusion]

    def markdown_lines(self) -> list[str]:
        """Return the report as Markdown."""
        lines = [f"`{self.server}`", ""]
        for step in self.steps:
            rate = step.turns / step.seconds
            lines += [f"{step.users} users, {step.seconds:.0f} s, {rate:.1f} turns/s:", ""]
            lines += [_markdown_row(_COLUMNS), _markdown_row(["---"] * len(_COLUMNS))]
            lines += [_markdown_row(row.cells()) for row in step.rows]
            lines += ["", *(f"- {note}" for note in step.notes()), ""]
        return [*lines, self.conclusion]

    def to_plain(self) -> dict[str, Any]:
        """Return the report as JSON values, times in seconds."""
        steps = [
            {**asdict(step), "clean": step.is_clean, "notes": list(step.notes())}
            for step in self.steps
        ]
        return {
            "server": self.server,
            "conclusion": self.conclusion,
            "columns": list(_COLUMNS),
            "steps": steps,
        }


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def summarise(
    samples: Sequence[Sample], times: dict[str, ModelTimes]
) -> tuple[list[Row], dict[str, int]]:
    """Return the rows of samples, and each error with its count.

    The server's own share of a turn is its time without that of the model; it is left out if the
    model's times are not known.
    """
    rows: list[Row] = []
    kinds = {sample.kind for sample in samples}
    for kind in sorted(kinds, key=lambda kind: (kind not in _FIRST_KINDS, kind)):
        of_kind = [sample for sample in samples if sample.kind == kind]
        good = [sample for sample in of_kind if not sample.error]
        rows.append(Row.of(kind, [one.seconds for one in good], len(of_kind) - len(good)))
        if kind != "turn":
            continue
        known = [(one, times[one.marker]) for one in good if one.marker in times]
        first = [(one.first, model) for one, model in known if one.first is not None]
        parts = {
            "turn: first delta": [one.first for one in good if one.first is not None],
            "turn: first delta, server's share": [at - model.first for at, model in first],
            "turn: server's share": [one.seconds - model.total for one, model in known],
        }
        rows += [Row.of(name, seconds) for name, seconds in parts.items() if seconds]
    errors = Counter(f"{sample.kind}: {sample.error}" for sample in samples if sample.error)
    return rows, dict(errors)
