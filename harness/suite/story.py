"""The story of a scenario whose own verdict is not a pass: what it wanted, the last messages.

Here: text for one outcome. Not here: the story of a rule (report), whose pieces are used here.
"""

from harness.report.story import frame_line, near_path, reproduction, stderr_lines, stored
from harness.rules.verdict import Verdict
from harness.suite.outcome import ScenarioOutcome

LAST = 8


def scenario_story(outcome: ScenarioOutcome) -> str:
    """The story of a scenario whose own verdict is not a pass."""
    lines = [f"{outcome.id}: {outcome.title}", ""]
    if outcome.verdict is Verdict.ERROR:
        lines += [outcome.reason]
    for finding in outcome.findings:
        known = f"  (known: {finding.known})" if finding.known else ""
        where = f"{near_path(outcome.path)}:{finding.line}"
        lines.append(f"  {where}: {finding.id}: {finding.message}{known}")
    violations = [row for row in outcome.rows if row.verdict in (Verdict.FAIL, Verdict.ERROR)]
    if violations:
        lines += ["", "rules that this run breaks (each counted at its rule):"]
        lines += [f"  {row.rule} ({row.level}): {row.actual}" for row in violations[:6]]
    if outcome.trace:
        lines += ["", "the last messages (ms since the trace began):"]
        lines += _last_lines(outcome.trace)
    lines += stderr_lines(outcome.stderr)
    if outcome.trace:
        lines += ["", *reproduction(outcome.trace)]
    return "\n".join(lines)


def _last_lines(path: str) -> list[str]:
    trace = stored(path)
    if trace is None:
        return []
    lines = [frame_line(frame) for frame in trace.frames[-LAST:]]
    lines += [
        f"    a line was begun and not ended: {mark.data.get('head')!r}"
        for mark in trace.marks_of("partial-line")
    ]
    return lines or ["  (none)"]
