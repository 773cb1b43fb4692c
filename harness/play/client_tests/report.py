"""Reports on connections: lines for people as each ends, one JSON object at the end."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from harness.judge.verdict import Verdict
from harness.play.client_tests.connection import Ended

RED, GREEN = "RED", "GREEN"
# So many scenarios that nobody began are named; the report has all of them.
MAX_NAMED = 5


def lines_of(ended: Ended) -> Iterator[str]:
    """Give the lines about one connection that has ended."""
    name = f" ({ended.scenario})" if ended.scenario else ""
    yield f"connection {ended.connection}{name}: {RED if ended.red else GREEN}"
    for problem in ended.problems:
        yield f"  {problem}"
    for duty in ended.duties:
        if duty.verdict not in (Verdict.FAIL.value, Verdict.ERROR.value):
            continue
        yield f"  {duty.level} {duty.rule}: expected {duty.expected}; found {duty.actual}"
        yield f"    {duty.clause}"
        yield from (f"    {line}" for line in duty.wire)


def report(connections: Sequence[Ended], unused: Sequence[str]) -> dict[str, Any]:
    """The whole as a JSON object."""
    return {
        "verdict": RED if is_red(connections) else GREEN,
        "connections": [one.json() for one in connections],
        "unused": list(unused),
    }


def is_red(connections: Sequence[Ended]) -> bool:
    """Return whether one of them was not as it should be, or none came at all."""
    return not connections or any(one.red for one in connections)


def report_text(connections: Sequence[Ended], unused: Sequence[str]) -> str:
    """The object as the text of a file."""
    return json.dumps(report(connections, unused), indent=2, ensure_ascii=False) + "\n"


def last_lines(connections: Sequence[Ended], unused: Sequence[str]) -> Iterator[str]:
    """Give the lines at the end of all."""
    if not connections:
        yield f"{RED}: no client connected"
        return
    red = sum(one.red for one in connections)
    told = f"{len(connections)} connection(s), {red} {RED}"
    if unused:
        more = f" and {len(unused) - MAX_NAMED} more" if len(unused) > MAX_NAMED else ""
        told += f"; no client began {', '.join(unused[:MAX_NAMED])}{more}"
    yield told
