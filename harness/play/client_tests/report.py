"""Reports on connections: lines for people as each ends, one JSON object at the end."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from harness.judge.verdict import Verdict
from harness.play.client_duties.verdicts import DutyVerdict
from harness.play.client_tests.connection import ConnectionResult
from harness.play.consequences import problem_lines, refused_lines
from harness.protocol.escapes import json_text, visible

RED, GREEN = "RED", "GREEN"
_FOUND = (Verdict.FAIL.value, Verdict.ERROR.value)
# Scenarios without a connection named in the summary; the JSON report has all.
MAX_NAMES_LISTED = 5


def lines_of(result: ConnectionResult) -> Iterator[str]:
    """Yield the lines about one connection that has ended.

    Broken duties and refused requests come first, since the problems may follow from them; INFO
    comes last.
    """
    name = f" ({result.scenario})" if result.scenario else ""
    yield f"connection {result.connection}{name}: {RED if result.is_red else GREEN}"
    found = [duty for duty in result.duties if duty.verdict in _FOUND]
    recorded = [duty for duty in found if duty.is_recorded]
    broken = [duty for duty in found if not duty.is_recorded]
    # A MUST comes before a SHOULD.
    yield from _duty_lines(sorted(broken, key=lambda duty: not duty.is_red()))
    if result.is_red:
        yield from (f"  {line}" for line in refused_lines(result.refused))
    for problem in problem_lines(result.problems, after_duty=bool(broken)):
        yield f"  {visible(problem)}"
    yield from _duty_lines(recorded)


def _duty_lines(duties: Iterable[DutyVerdict]) -> Iterator[str]:
    for duty in duties:
        yield f"  {duty.level} {duty.rule}: expected {duty.expected}; found {duty.actual}"
        yield f"    {duty.clause}"
        yield from (f"    {line}" for line in duty.wire)


def report(connections: Sequence[ConnectionResult], unused: Sequence[str]) -> dict[str, Any]:
    """Return the whole report as a JSON object."""
    return {
        "verdict": RED if is_red(connections) else GREEN,
        "connections": [connection.to_json() for connection in connections],
        "unused": list(unused),
    }


def is_red(connections: Sequence[ConnectionResult]) -> bool:
    """Return whether a connection had a problem or a broken duty, or no client connected."""
    return not connections or any(connection.is_red for connection in connections)


def report_text(connections: Sequence[ConnectionResult], unused: Sequence[str]) -> str:
    """Return the whole report as the text of a JSON file."""
    return json_text(report(connections, unused), indent=2) + "\n"


def summary_lines(connections: Sequence[ConnectionResult], unused: Sequence[str]) -> Iterator[str]:
    """Yield the lines at the end of the run."""
    if not connections:
        yield f"{RED}: no client connected"
        return
    red = sum(connection.is_red for connection in connections)
    line = f"{len(connections)} connection(s), {red} {RED}"
    if unused:
        more = (
            f" and {len(unused) - MAX_NAMES_LISTED} more" if len(unused) > MAX_NAMES_LISTED else ""
        )
        line += f"; no client began {', '.join(unused[:MAX_NAMES_LISTED])}{more}"
    yield line
