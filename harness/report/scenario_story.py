"""The story of a scenario that did not pass: its findings, the last messages, how to repeat it."""

from harness.judge.verdict import Level, Verdict
from harness.protocol.escapes import visible_lines
from harness.report.results.outcome import RaceOutcome, ScenarioOutcome
from harness.report.results.rerun_command import (
    Programs,
    near_path,
    replay_command,
    reproduction,
    scenario_argument,
)
from harness.report.story import stderr_lines
from harness.report.wire_lines import frame_line, load_stored, proof_lines
from harness.trace.marks import PartialLine
from harness.trace.surfaces import surface_of

MAX_LAST_MESSAGES = 8
# The failed placements of a race that are shown in full.
MAX_PLACEMENTS_SHOWN = 2
# The scenarios that failed with the same text and are shown in full.
MAX_SAME_STORIES = 3


class Stories:
    """The stories of one process; after three with the same text the others are short.

    One fault of a server can fail fifty scenarios in the same way; repeating the same wire lines
    fifty times would hide everything else.
    """

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._ids_by_findings: dict[tuple[tuple[str, str], ...], list[str]] = {}

    def tell_scenario(self, outcome: ScenarioOutcome) -> str:
        """Return the story of a scenario that failed."""
        words = tuple((finding.id, finding.message) for finding in outcome.findings)
        ids = self._ids_by_findings.setdefault(words, [])
        ids.append(outcome.id)
        if not words or outcome.verdict is Verdict.ERROR or len(ids) <= MAX_SAME_STORIES:
            return scenario_story(outcome, self._programs)
        lines = [f"{outcome.id}: {outcome.title}", "", *_finding_lines(outcome)]
        lines.append(
            f"  the same as in {', '.join(ids[:MAX_SAME_STORIES])}, which are shown in full"
        )
        again = replay_command(
            self._programs,
            [surface_of(outcome.id)],
            [scenario_argument(outcome.path, outcome.id)],
            race=outcome.race,
        )
        return visible_lines("\n".join([*lines, "", f"repeat    {again}"]))

    def tell_race(self, outcome: RaceOutcome) -> str:
        """Return the story of a race that failed."""
        return race_story(outcome, self._programs)


def scenario_story(outcome: ScenarioOutcome, programs: Programs) -> str:
    """Return the story of a scenario whose own verdict is not a pass."""
    surface = surface_of(outcome.id)
    lines = [f"{outcome.id}: {outcome.title}", ""]
    if outcome.verdict is Verdict.ERROR:
        lines += [outcome.reason]
    lines += _finding_lines(outcome)
    explained = dict.fromkeys(finding.id for finding in outcome.findings)
    lines += [f"  harness explain {name} says what that means" for name in explained]
    violations = [row for row in outcome.rows if row.verdict in (Verdict.FAIL, Verdict.ERROR)]
    violations.sort(key=lambda row: list(Level).index(row.level))
    if violations:
        lines += ["", "rules that this run breaks (each counted at its rule):"]
        lines += [f"  {row.rule} ({row.level}): {row.actual}" for row in violations[:6]]
    if outcome.trace:
        lines += _proof_section(outcome)
        lines += ["", "the last messages (ms since the trace began):"]
        lines += _last_lines(outcome.trace)
    lines += stderr_lines(outcome.stderr)
    path = scenario_argument(outcome.path, outcome.id)
    again = replay_command(programs, [surface], [path], race=outcome.race)
    lines += ["", f"repeat    {again}"]
    lines += reproduction(outcome.trace, programs.target, surface) if outcome.trace else []
    return visible_lines("\n".join(lines))


def _finding_lines(outcome: ScenarioOutcome) -> list[str]:
    lines: list[str] = []
    for finding in outcome.findings:
        known_words = f"  (known: {finding.known})" if finding.known else ""
        place = near_path(outcome.path) + (f":{finding.line}" if finding.line else "")
        lines.append(f"  {place}: {finding.id}: {finding.message}{known_words}")
        lines += [f"    | {line}" for line in finding.detail]
    return lines


def _proof_section(outcome: ScenarioOutcome) -> list[str]:
    """Return the wire lines of the messages that the findings name, if any."""
    trace = load_stored(outcome.trace)
    places = [place for finding in outcome.findings for place in finding.places]
    if trace is None or not places:
        return []
    lines = proof_lines(trace, (), places, context=0)
    return ["", "wire (ms since the trace began; * marks the proof):", *lines]


def race_story(outcome: RaceOutcome, programs: Programs) -> str:
    """Return the story of a race that did not pass: each failed placement, and how to repeat it."""
    failed = [
        placement
        for placement in outcome.placements
        if placement.verdict in (Verdict.FAIL, Verdict.ERROR)
    ]
    if not failed:
        return visible_lines(f"{outcome.id}: {outcome.reason}")
    lines = [
        f"{outcome.id}: {outcome.title}",
        f"{len(failed)} of {len(outcome.placements)} placement(s) of {outcome.action} fail",
    ]
    for placement in failed[:MAX_PLACEMENTS_SHOWN]:
        story = scenario_story(placement, programs)
        lines += ["", _placement_head(placement), *story.split("\n")[2:]]
    if len(failed) > MAX_PLACEMENTS_SHOWN:
        lines += ["", f"and {len(failed) - MAX_PLACEMENTS_SHOWN} more: "]
        lines[-1] += ", ".join(placement.race for placement in failed[MAX_PLACEMENTS_SHOWN:])
    return "\n".join(lines)


def _placement_head(outcome: ScenarioOutcome) -> str:
    position_words = (
        "no gate holds the server there" if outcome.racy else "the server is held there"
    )
    times = f", {outcome.runs} runs" if outcome.runs > 1 else ""
    race = outcome.race_id
    return f"action {race.action} at position {race.position} ({position_words}{times}):"


def _last_lines(path: str) -> list[str]:
    trace = load_stored(path)
    if trace is None:
        return []
    lines = [frame_line(frame) for frame in trace.frames[-MAX_LAST_MESSAGES:]]
    lines += [
        f"    a line was begun and not ended: {mark.body.head!r}"
        for mark in trace.marks_of(PartialLine)
    ]
    return lines or ["  (none)"]
