"""Shares of the session suite's time, by phase and by cause of CPU time.

`python -m tools.bench where` prints them. One worker and lane plays, so that nothing overlaps.
Phases are computed from the marks of the traces, and include the CPU time of the harness and the
servers; the harness's CPU time by cause is sampled by `tools.bench.sampled`.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.scenario.bundled import bundled_folder
from harness.scenario.ending import QUIET_SECONDS
from harness.trace.frame import Frame, Kind
from harness.trace.marks import EndingBegins, ServerEnded, Settled, Setup, StepBegins
from harness.trace.store import load
from harness.trace.trace import Trace
from tools.bench.client import MeasurementFailed
from tools.bench.processes import run

NOT_PLAYED = ("exec", "mcp", "sdk")
"""Folders of bundled scenarios that are not of the session protocol."""
BOUND = 900.0
LONG = 1.0
"""Minimum seconds of a step to be listed by name."""
SHOWN = 8

START, HANDSHAKE = "server: spawned, until it is spoken to", "handshake: the server boots"
STEPS, ENDING = "steps of the scenario", "the ending: barrier, open answers"
SHORT, SETTLED = (
    f"silence of {QUIET_SECONDS * 1000:g} ms, nothing owed",
    "silence of `settle`, owed",
)
UNSEEN = "threads that ended between two samples"
BETWEEN = "around them: folders, process watching, ends of servers"


@dataclass(slots=True)
class Phases:
    """Elapsed seconds and occurrences of each phase of a run.

    `long_steps` counts steps of at least `LONG` seconds by name, `starts` server starts by reason.
    """

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    counts: Counter[str] = field(default_factory=Counter[str])
    long_steps: Counter[str] = field(default_factory=Counter[str])
    starts: Counter[str] = field(default_factory=Counter[str])

    def add(self, cause: str, seconds: float) -> None:
        """Add one occurrence of a phase."""
        self.seconds[cause] = self.seconds.get(cause, 0.0) + seconds
        self.counts[cause] += 1


def phases_of(traces: Iterable[Trace]) -> Phases:
    """Return the phases of a run with these traces, without `starts`."""
    phases = Phases()
    for trace in traces:
        _add_setup(phases, trace)
        _add_steps(phases, trace)
        _add_ending(phases, trace)
    return phases


def _add_setup(phases: Phases, trace: Trace) -> None:
    """Add the server's start and handshake, if they came before the first step."""
    setup = [mark.at for mark in trace.marks if isinstance(mark.body, Setup)]
    first_request = next((one for one in trace.frames if _greets(one)), None)
    if first_request is None or len(setup) < 2 or first_request.at > setup[1]:
        return
    phases.add(START, first_request.at)
    phases.add(HANDSHAKE, setup[1] - first_request.at)


def _greets(frame: Frame) -> bool:
    return frame.method == "initialize" and frame.kind is Kind.REQUEST and not frame.from_target


def _add_steps(phases: Phases, trace: Trace) -> None:
    ending = _ending(trace)
    steps = [mark for mark in trace.marks if isinstance(mark.body, StepBegins)]
    ends = [*(mark.at for mark in steps[1:]), ending if ending is not None else _last(trace)]
    for mark, end in zip(steps, ends, strict=False):
        took = end - mark.at
        phases.add(STEPS, took)
        if took >= LONG and isinstance(mark.body, StepBegins):
            phases.long_steps[mark.body.name] += 1


def _add_ending(phases: Phases, trace: Trace) -> None:
    """Add the ending of a trace, and separately the silence that it ends with."""
    ending_at = _ending(trace)
    if ending_at is None:
        return
    settled = next((one for one in trace.marks if isinstance(one.body, Settled)), None)
    if settled is not None and isinstance(settled.body, Settled):
        phases.add(ENDING, max(0.0, settled.at - ending_at - settled.body.silence))
        phases.add(SETTLED, settled.body.silence)
    else:
        phases.add(ENDING, max(0.0, _last(trace) - ending_at))
        phases.add(SHORT, QUIET_SECONDS)


def _ending(trace: Trace) -> float | None:
    return next((one.at for one in trace.marks if isinstance(one.body, EndingBegins)), None)


def _last(trace: Trace) -> float:
    return max(
        trace.frames[-1].at if trace.frames else 0.0, trace.marks[-1].at if trace.marks else 0.0
    )


def starts_of(report: Mapping[str, Any], traces: Iterable[Trace]) -> Counter[str]:
    """Count server starts by reason, as the report has them, else as the traces show."""
    if "starts" in report:
        return Counter(str(one["reason"]) for one in report["starts"])
    starts = Counter[str]()
    for trace in traces:
        ended = [one.after for one in trace.marks if isinstance(one.body, ServerEnded)]
        first = next((one for one in trace.frames if _greets(one)), None)
        setup = next((one.after for one in trace.marks if isinstance(one.body, Setup)), None)
        starts["before the first step"] += first is not None and setup is not None
        starts["a step ended the server, and it is started again"] += len(ended)
    return +starts


@dataclass(frozen=True, slots=True)
class Measurement:
    """A run: its report, its phases, and the result of `tools.bench.sampled`."""

    report: Mapping[str, Any]
    phases: Phases
    cpu: Mapping[str, Any]


def measure(folder: Path, scenarios: Iterable[Path] = ()) -> Measurement:
    """Play the session suite, or `scenarios`, on the reference server.

    Raises MeasurementFailed if there is no report, OSError or ValueError if it cannot be read."""
    run_folder = folder / "where"
    run_folder.mkdir(parents=True)
    played = list(scenarios) or session_areas()
    used, report = run_folder / "used.json", run_folder / "report.json"
    command = [sys.executable, "-m", "tools.bench.sampled", str(used)]
    command += ["--harness-target", "reference", "--harness-json", str(report)]
    command += ["--harness-lanes", "1"]
    output = run([*command, *map(str, played)], run_folder, BOUND)
    if not used.exists() or not report.exists():
        raise MeasurementFailed(f"the run wrote no report: {output[-400:]}")
    report_fields = json.loads(report.read_text("utf-8"))
    traces = traces_of(report_fields, run_folder)
    phases = phases_of(traces)
    phases.starts = starts_of(report_fields, traces)
    return Measurement(report_fields, phases, json.loads(used.read_text("utf-8")))


def traces_of(report: Mapping[str, Any], folder: Path) -> list[Trace]:
    """Return the stored traces of the scenarios that a run in `folder` played."""
    return [load(folder / one["trace"]) for one in report["scenarios"] if one["trace"]]


def session_areas() -> list[Path]:
    """Return the folders of the bundled scenarios of the session protocol."""
    areas = sorted(one for one in bundled_folder().iterdir() if one.is_dir())
    return [one for one in areas if one.name not in NOT_PLAYED]


def lines_of(measured: Measurement) -> Iterator[str]:
    """Yield the lines of the printed tables."""
    used, phases = measured.cpu, measured.phases
    played = [one for one in measured.report["scenarios"] if one["trace"]]
    play = sum(one["seconds"] for one in played)
    starts = sum(phases.starts.values())
    yield (
        f"where the time goes: {len(played)} scenarios, one worker, {starts} starts of servers\n"
        f"{used['wall']:.1f} s by the clock; CPU: the harness {used['harness']:.1f} s, servers and "
        f"commands {used['children']:.1f} s"
    )
    yield "\nwhat went by while scenarios were played                         s      of"
    for cause, seconds in _sorted_descending(phases.seconds):
        yield _row(cause, seconds, f"{phases.counts[cause]:7}")
    yield _row(BETWEEN, play - sum(phases.seconds.values()), "")
    yield _row("the rest of the run: see the CPU of the harness", used["wall"] - play, "")
    for name, count in phases.long_steps.most_common(SHOWN):
        yield f"  {count} of the steps took {LONG:g} s or more: {name}"
    yield "\nCPU of the harness, sampled                                      s       %"
    causes: dict[str, float] = used["causes"]
    causes = {**causes, UNSEEN: max(0.0, used["harness"] - sum(causes.values()))}
    for cause, seconds in _sorted_descending(causes):
        yield _row(cause, seconds, f"{seconds / max(used['harness'], 1e-9):7.0%}")
    yield "\nstarts of servers, by reason"
    for reason, count in phases.starts.most_common():
        yield f"  {reason:58}{count:6}"


def _sorted_descending(seconds: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda one: -one[1])


def _row(label: str, seconds: float, more: str) -> str:
    return f"  {label:58}{seconds:6.1f} {more}".rstrip()
