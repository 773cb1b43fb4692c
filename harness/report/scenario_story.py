"""The story of a scenario that did not pass: what it wanted, the last messages."""

from harness.judge.verdict import Level, Verdict
from harness.report.results.outcome import RaceOutcome, ScenarioOutcome
from harness.report.results.rerun_command import (
    Programs,
    named,
    near_path,
    play_again,
    reproduction,
)
from harness.report.story import stderr_lines
from harness.report.wirelines import frame_line, proof_lines, stored
from harness.trace.marks import PartialLine
from harness.trace.surfaces import surface_of

LAST = 8
# So many failed placements of a race are shown in full.
SHOWN = 2
# So many scenarios that failed with the same text are shown in full.
ALIKE = 3


class Stories:
    """The stories of one process; after three with the same text the others are short.

    One fault of a server can fail fifty scenarios in the same way; repeating the same wire lines
    fifty times would hide everything else.
    """

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._told: dict[tuple[tuple[str, str], ...], list[str]] = {}

    def scenario(self, outcome: ScenarioOutcome) -> str:
        """The story of a scenario that failed."""
        words = tuple((one.id, one.message) for one in outcome.findings)
        told = self._told.setdefault(words, [])
        told.append(outcome.id)
        if not words or outcome.verdict is Verdict.ERROR or len(told) <= ALIKE:
            return scenario_story(outcome, self._programs)
        lines = [f"{outcome.id}: {outcome.title}", "", *_found(outcome)]
        lines.append(f"  the same as in {', '.join(told[:ALIKE])}, whose stories are told whole")
        again = play_again(
            self._programs,
            [surface_of(outcome.id)],
            [named(outcome.path, outcome.id)],
            race=outcome.race,
        )
        return "\n".join([*lines, "", f"repeat    {again}"])

    def race(self, outcome: RaceOutcome) -> str:
        """The story of a race that failed."""
        return race_story(outcome, self._programs)


def scenario_story(outcome: ScenarioOutcome, programs: Programs) -> str:
    """The story of a scenario whose own verdict is not a pass."""
    surface = surface_of(outcome.id)
    lines = [f"{outcome.id}: {outcome.title}", ""]
    if outcome.verdict is Verdict.ERROR:
        lines += [outcome.reason]
    lines += _found(outcome)
    explained = dict.fromkeys(finding.id for finding in outcome.findings)
    lines += [f"  harness explain {name} says what that means" for name in explained]
    violations = [row for row in outcome.rows if row.verdict in (Verdict.FAIL, Verdict.ERROR)]
    violations.sort(key=lambda row: list(Level).index(row.level))
    if violations:
        lines += ["", "rules that this run breaks (each counted at its rule):"]
        lines += [f"  {row.rule} ({row.level}): {row.actual}" for row in violations[:6]]
    if outcome.trace:
        lines += _proof(outcome)
        lines += ["", "the last messages (ms since the trace began):"]
        lines += _last_lines(outcome.trace)
    lines += stderr_lines(outcome.stderr)
    path = named(outcome.path, outcome.id)
    again = play_again(programs, [surface], [path], race=outcome.race)
    lines += ["", f"repeat    {again}"]
    lines += reproduction(outcome.trace, programs.target, surface) if outcome.trace else []
    return "\n".join(lines)


def _found(outcome: ScenarioOutcome) -> list[str]:
    lines: list[str] = []
    for finding in outcome.findings:
        known = f"  (known: {finding.known})" if finding.known else ""
        where = near_path(outcome.path) + (f":{finding.line}" if finding.line else "")
        lines.append(f"  {where}: {finding.id}: {finding.message}{known}")
        lines += [f"    | {line}" for line in finding.detail]
    return lines


def _proof(outcome: ScenarioOutcome) -> list[str]:
    """The wire lines of the messages that the findings name, if any."""
    trace = stored(outcome.trace)
    places = [place for finding in outcome.findings for place in finding.places]
    if trace is None or not places:
        return []
    lines = proof_lines(trace, (), places, around=0)
    return ["", "wire (ms since the trace began; * marks the proof):", *lines]


def race_story(outcome: RaceOutcome, programs: Programs) -> str:
    """The story of a race that did not pass: every placement that failed, and how to repeat it."""
    failed = [one for one in outcome.placements if one.verdict in (Verdict.FAIL, Verdict.ERROR)]
    if not failed:
        return f"{outcome.id}: {outcome.reason}"
    lines = [
        f"{outcome.id}: {outcome.title}",
        f"{len(failed)} of {len(outcome.placements)} placement(s) of {outcome.action} fail",
    ]
    for one in failed[:SHOWN]:
        told = scenario_story(one, programs)
        lines += ["", _placement_head(one), *told.split("\n")[2:]]
    if len(failed) > SHOWN:
        lines += ["", f"and {len(failed) - SHOWN} more: "]
        lines[-1] += ", ".join(one.race for one in failed[SHOWN:])
    return "\n".join(lines)


def _placement_head(one: ScenarioOutcome) -> str:
    held = "no gate holds the server there" if one.racy else "the server is held there"
    times = f", {one.runs} runs" if one.runs > 1 else ""
    return f"action {one.race_id.action} at position {one.race_id.position} ({held}{times}):"


def _last_lines(path: str) -> list[str]:
    trace = stored(path)
    if trace is None:
        return []
    lines = [frame_line(frame) for frame in trace.frames[-LAST:]]
    lines += [
        f"    a line was begun and not ended: {mark.body.head!r}"
        for mark in trace.marks_of(PartialLine)
    ]
    return lines or ["  (none)"]
