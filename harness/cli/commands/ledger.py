"""`harness ledger RUN`: a server's choices at the points that the specification leaves open."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import UsageError
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.rows import Unspecified
from harness.report.compare.values import Run
from harness.report.results.rerun_command import near_path
from harness.report.results.sightings import ChoiceResult, unpack
from harness.scenario.explain import unknown_name
from harness.trace.surfaces import surface_of

_WIDTH = 100
NOT_SEEN = "not seen in this run"


@dataclass(frozen=True, slots=True)
class PointRow:
    """One open point and its results: each value once per situation."""

    point: Unspecified
    results: tuple[ChoiceResult, ...]

    @property
    def server(self) -> list[str]:
        """Return per situation the server's values with their counts; if none, why none."""
        if not self.results:
            reason = self.point.unseen
            return [f"no message shows it: {reason}" if reason else NOT_SEEN]
        situations: dict[str, list[ChoiceResult]] = {}
        for result in self.results:
            situations.setdefault(result.about, []).append(result)
        return [_choice_words(situation, results) for situation, results in situations.items()]

    def to_plain(self) -> dict[str, Any]:
        """Return the row as JSON."""
        return {
            "id": self.point.id,
            "question": self.point.question,
            "ours": self.point.choice,
            "server": [
                {"about": result.about, "value": result.value, "count": result.count}
                for result in self.results
            ],
        }


def _choice_words(situation: str, results: Sequence[ChoiceResult]) -> str:
    often = sorted(results, key=lambda result: (-result.count, result.value))
    values = "; ".join(f"{result.value} ({result.count})" for result in often)
    varies = "varies: " if len(often) > 1 else ""
    return f"{situation}: {varies}{values}" if situation else f"{varies}{values}"


def open_points(run: Run) -> list[Unspecified]:
    """Return the open points of the surfaces on which a run played."""
    played = {surface_of(scenario.id) for scenario in run.report.scenarios}
    return [point for point in load_book().unspecified if point.is_about(played)]


def ledger_rows(run: Run, prefix: str = "") -> list[PointRow]:
    """Return a row per open point whose id begins with `prefix`, in the specification's order.

    Raises `UsageError` if there is none, or if the report has no recorded choices.
    """
    if not run.report.choices:
        raise UsageError(f"{run.name}: no choices are recorded in this report; run it again")
    all_points = open_points(run)
    points = [point for point in all_points if point.id.startswith(prefix)]
    if not points:
        raise UsageError(unknown_name("open point", prefix, [point.id for point in all_points]))
    return [PointRow(point, tuple(run.report.choices.get(point.id, ()))) for point in points]


def text_lines(run: Run, rows: Sequence[PointRow]) -> Iterator[str]:
    """Yield the table for a terminal: a few lines per point."""
    for row in rows:
        yield from _wrap(f"{row.point.id}: {row.point.question}", "")
        yield from _wrap(f"ours    {row.point.choice}", "    ")
        for index, chosen in enumerate(row.server):
            yield from _wrap(f"{'server' if not index else '      '}  {chosen}", "    ")
        if row.results:
            yield f"    shown   {_show_command(run, row.results[0])}"
    yield ""
    yield seen_summary(rows)


def seen_summary(rows: Sequence[PointRow]) -> str:
    """Return for example "the server's choice was seen at 115 of 147 open points"."""
    visible = [row for row in rows if row.point.unseen is None]
    seen_count = sum(bool(row.results) for row in visible)
    return f"the server's choice was seen at {seen_count} of {len(visible)} open points"


def _show_command(run: Run, result: ChoiceResult) -> str:
    proof = unpack(result.shown)
    trace = run.report.scenarios[proof.first].trace
    return f"harness show {near_path(trace)} --message {proof.frame}"


def _wrap(text: str, indent: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}        "
    )


def markdown_lines(rows: Sequence[PointRow]) -> Iterator[str]:
    """Yield the table as Markdown."""
    yield "| point | question | ours | this server |"
    yield "|---|---|---|---|"
    for row in rows:
        cells = (f"`{row.point.id}`", row.point.question, row.point.choice, "<br>".join(row.server))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""
    yield seen_summary(rows)
