"""`harness ledger RUN`: what a server chose at the points that the text leaves open."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.errors import UsageError
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.rows import Unspecified
from harness.report.compare.values import Run
from harness.report.results.recorded import ChoiceResult, unpack
from harness.report.results.rerun_command import near_path
from harness.scenario.explain import unknown
from harness.trace.surfaces import surface_of

_WIDTH = 100
NOT_SEEN = "not seen in this run"


@dataclass(frozen=True, slots=True)
class Line:
    """One point, and what was seen there: each value once for each situation."""

    point: Unspecified
    seen: tuple[ChoiceResult, ...]

    @property
    def server(self) -> list[str]:
        """Return the choices of the server, in words; of a value that varies, all of them."""
        if not self.seen:
            reason = self.point.unseen
            return [f"no message shows it: {reason}" if reason else NOT_SEEN]
        situations: dict[str, list[ChoiceResult]] = {}
        for result in self.seen:
            situations.setdefault(result.about, []).append(result)
        return [_chosen(situation, results) for situation, results in situations.items()]


def _chosen(about: str, found: Sequence[ChoiceResult]) -> str:
    often = sorted(found, key=lambda result: (-result.count, result.value))
    values = "; ".join(f"{result.value} ({result.count})" for result in often)
    varies = "varies: " if len(often) > 1 else ""
    return f"{about}: {varies}{values}" if about else f"{varies}{values}"


def open_points(run: Run) -> list[Unspecified]:
    """The points of the surfaces on which a run played."""
    played = {surface_of(scenario.id) for scenario in run.report.scenarios}
    return [point for point in load_book().unspecified if point.is_about(played)]


def ledger(run: Run, named: str = "") -> list[Line]:
    """All points in the order of the text, or those whose id begins with `named`.

    Raises `UsageError` where none does, or the report was written before choices were recorded.
    """
    if not run.report.choices:
        raise UsageError(f"{run.name}: no choices are recorded in this report; run it again")
    all_points = open_points(run)
    points = [point for point in all_points if point.id.startswith(named)]
    if not points:
        raise UsageError(unknown("open point", named, [point.id for point in all_points]))
    return [Line(point, tuple(run.report.choices.get(point.id, ()))) for point in points]


def text_lines(run: Run, rows: Sequence[Line]) -> Iterator[str]:
    """The table for a terminal: a few lines for each point."""
    for row in rows:
        yield from _wrapped(f"{row.point.id}: {row.point.question}", "")
        yield from _wrapped(f"ours    {row.point.choice}", "    ")
        for index, chosen in enumerate(row.server):
            yield from _wrapped(f"{'server' if not index else '      '}  {chosen}", "    ")
        if row.seen:
            yield f"    shown   {_shown(run, row.seen[0])}"
    yield ""
    yield summed(rows)


def summed(rows: Sequence[Line]) -> str:
    """ "115 of 147 open points were seen"."""
    visible = [row for row in rows if row.point.unseen is None]
    seen_count = sum(bool(row.seen) for row in visible)
    return f"{seen_count} of {len(visible)} open points were seen"


def _shown(run: Run, chosen: ChoiceResult) -> str:
    proof = unpack(chosen.shown)
    trace = run.report.scenarios[proof.first].trace
    return f"harness show {near_path(trace)} --message {proof.frame}"


def _wrapped(text: str, indent: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}        "
    )


def markdown_lines(rows: Sequence[Line]) -> Iterator[str]:
    """The table as Markdown."""
    yield "| point | question | ours | this server |"
    yield "|---|---|---|---|"
    for row in rows:
        cells = (f"`{row.point.id}`", row.point.question, row.point.choice, "<br>".join(row.server))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""
    yield summed(rows)
