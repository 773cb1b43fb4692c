"""`harness scenario from-trace`: turn a recorded or played session into a scenario."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from harness.cli.commands.stored_traces import builtin_server_names, load_stored
from harness.client.target.profile import ExecProgram, built_in_release, load_profile
from harness.client.target.run_folders import find_kept_file
from harness.errors import UsageError
from harness.judge.judge import feed_trace
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Row, Verdict
from harness.play.lexicon import protocol_lexicon
from harness.protocol.spec.loading import load_book
from harness.scenario.from_trace.build import ScenarioFromTrace, scenario_of
from harness.scenario.from_trace.story import Story
from harness.scenario.from_trace.titles import title_of
from harness.scenario.identity import SUFFIX
from harness.scenario.race_id import RaceId
from harness.trace.marks import Leaving
from harness.trace.store import TraceFormatError
from harness.trace.surfaces import EXEC, SESSION
from harness.trace.trace import Trace

# Rules listed in `covers`: broken ones, then those of `_TELLING_FAMILIES` in this order.
MAX_RULES_COVERED: Final = 4
# Broken rules named in the note about them.
MAX_RULES_NAMED: Final = 5
_TELLING_FAMILIES: Final = (
    "approval",
    "steer",
    "interrupt",
    "error",
    "mcp",
    "plan",
    "delta",
    "turn",
    "exec",
)
# These judge messages within a turn; an interrupted turn may have none of them on replay.
_IN_TURN_FAMILIES: Final = ("mcp", "plan", "delta")
# The surfaces whose traces become scenarios, and the option that plays them.
_PLAYED_BY: Final = {SESSION: "--target NAME", EXEC: "--agent-cmd COMMAND"}


@dataclass(frozen=True, slots=True)
class ReadTrace:
    """A trace, and the damage of its file ("" if undamaged)."""

    trace: Trace
    damage: str = ""


def from_trace(path: Path, *, title: str = "", timing: bool = False) -> ScenarioFromTrace:
    """Return the scenario made from a trace file; with `timing` its model waits as recorded.

    Raises `UsageError` if the file is not a trace, or if no scenario plays its surface.
    """
    read = read_trace(find_kept_file(path))
    trace = read.trace
    surface = trace.header.surface
    if surface not in _PLAYED_BY:
        played = RaceId.parse(trace.header.scenario).scenario
        raise UsageError(
            f"{path}: a trace of the surface {surface!r}; scenarios are made of traces of "
            f"the surfaces {SESSION} and {EXEC}. What was played here is "
            f"{played or 'not said'}: begin with that scenario"
        )
    rows = judged_rows(trace)
    broken = broken_note(trace, rows)
    scenario = scenario_of(
        trace,
        title=title or title_of(trace),
        covers=covered_rules(trace, rows),
        first_notes=[broken] if broken else [],
        timing=timing,
        lexicon=protocol_lexicon(),
        program=_program(trace) if surface == EXEC else None,
        origin=path.name + (f" ({read.damage})" if read.damage else ""),
    )
    notes = (*([read.damage] if read.damage else []), *scenario.notes)
    return replace(scenario, notes=notes, played_by=_PLAYED_BY[surface])


def read_trace(path: Path) -> ReadTrace:
    """Return the trace in a file, up to any damage; `UsageError` if its first line is bad."""
    server_names = builtin_server_names()

    def load_part(file: Path) -> Trace:
        return load_stored(file, known_names=server_names)

    try:
        trace = load_part(path)
    except TraceFormatError as error:
        number = _line_of(str(error), path)
        if number < 2:
            raise
        with TemporaryDirectory() as folder:
            part = Path(folder) / path.name
            with path.open("rb") as source:
                part.write_bytes(b"".join(islice(source, number - 1)))
            trace = load_part(part)
        return ReadTrace(trace, f"only what is before line {number} is used: {error}")
    return ReadTrace(trace, "; ".join(trace.damage))


def judged_rows(trace: Trace) -> list[Row]:
    """Return the rows of all MUST rules of the trace's surface."""
    rules = [rule for rule in all_rules().values() if rule.surface == trace.header.surface]
    rows = feed_trace(load_book(), trace, rules=rules).finish(trace.end)
    return [row for row in rows if row.level is Level.MUST]


def broken_rows(trace: Trace, rows: Sequence[Row]) -> list[Row]:
    """Return the server's violations, without the known deviations of the trace's profile."""
    known_rules = _known_rules(trace.header.profile)
    return [
        row
        for row in rows
        if row.verdict is Verdict.FAIL
        and row.rule not in known_rules
        and not row.rule.startswith("harness.")
    ]


def covered_rules(trace: Trace, rows: Sequence[Row]) -> list[str]:
    """Return at most `MAX_RULES_COVERED` rules: broken ones, then the most characteristic."""
    broken = {row.rule for row in broken_rows(trace, rows)}
    known_rules = _known_rules(trace.header.profile)
    moments = _Moments(trace)
    passed = {
        row.rule for row in rows if row.verdict is Verdict.PASS and moments.is_repeatable(row)
    }
    telling = [
        rule
        for family in _TELLING_FAMILIES
        for rule in sorted(passed - broken - known_rules)
        if rule.split(".")[0] == family
    ]
    return [*sorted(broken), *telling][:MAX_RULES_COVERED]


@cache
def _known_rules(profile: str) -> frozenset[str]:
    """Return the rules for which a built-in profile lists a known deviation."""
    # A trace names the profile and not its file, so only those that ship are found.
    deviations = load_profile(profile).deviations if built_in_release(profile) else ()
    return frozenset(deviation.rule for deviation in deviations)


def broken_note(trace: Trace, rows: Sequence[Row]) -> str:
    """Return a note on the rules that the recorded server broke, "" if it broke none.

    The scenario's expectations are taken from the trace, the server's mistakes included.
    """
    places: dict[str, str] = {}
    for row in broken_rows(trace, rows):
        last = max(row.frames, default=-1)
        line = trace.line_of(last)
        place = f"line {line}" if line else f"#{last}"
        places.setdefault(row.rule, f"{row.rule} ({place})" if last >= 0 else row.rule)
    if not places:
        return ""
    named = list(places.values())
    more = len(named) - MAX_RULES_NAMED
    rest = f" and {more} more" if more > 0 else ""
    return (
        f"the recorded server broke {', '.join(named[:MAX_RULES_NAMED])}{rest}: expectations "
        "below are as recorded, so correct those that repeat the mistake"
    )


def _program(trace: Trace) -> ExecProgram:
    """Return the command-line words of the traced program; the shipped agent's if unknown."""
    name = trace.header.profile
    return load_profile(name if built_in_release(name) else "spec").exec


class _Moments:
    """Turns of a trace, sorted by whether their messages recur on replay with other timing."""

    def __init__(self, trace: Trace) -> None:
        changes = [mark.after for mark in trace.marks_of(Leaving)]
        changes += [frame.seq for frame in trace.frames if frame.method == "initialize"]
        turns = list(Story(trace).turns.values())
        self._whole = [turn for turn in turns if turn.status == "completed"]
        # Messages sent while a client connects or leaves may not reach it again on replay.
        self._disturbed = [turn for turn in turns if any(turn.runs_at(seq) for seq in changes)]

    def is_repeatable(self, row: Row) -> bool:
        """Return whether the messages that a row judged will be there on replay too."""
        if any(turn.runs_at(seq) for turn in self._disturbed for seq in row.frames):
            return False
        if row.rule.split(".")[0] not in _IN_TURN_FAMILIES:
            return True
        return all(any(turn.runs_at(seq) for turn in self._whole) for seq in row.frames)


def write_scenario(scenario: ScenarioFromTrace, path: Path, *, force: bool = False) -> Path:
    """Write a scenario to a new file, or over an existing one with `force`; return the path.

    Raises `UsageError` if the file exists, or if its name does not end like a scenario's.
    """
    if not path.name.endswith(SUFFIX):
        raise UsageError(f"{path}: a scenario's file ends in {SUFFIX}")
    if path.exists() and not force:
        raise UsageError(f"{path} is there already; name another file, or --force to write over it")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(scenario.text, encoding="utf-8")
    return path


def _line_of(message: str, path: Path) -> int:
    """Return the line that a message about a file names, 0 if it names none."""
    number = message.removeprefix(f"{path}:").split(":", 1)[0]
    return int(number) if number.isdigit() else 0
