"""The harness's own time per trivial scenario.

Overhead is the time of a whole run of the harness, without the time spent waiting for the server
(from each request to its answer, from `turn/start` to `turn/completed`, from the server's start to
its first answer) and without the silence at the end of each trace.
"""

import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from harness.protocol.values import dig
from harness.scenario.bundled import bundled_folder
from harness.scenario.ending import QUIET_SECONDS
from harness.scenario.loader import SUFFIX
from harness.trace.correlation import Correlation
from harness.trace.frame import Frame, Kind
from harness.trace.trace import Trace
from tools.bench.client import MeasurementFailed, monotonic
from tools.bench.processes import cpu_of_children, run
from tools.bench.stats import Absent, Cell, Figure
from tools.bench.where import traces_of

TRIVIAL = "turns/plain-turn"
SCENARIOS = 500
BOUND = 240.0


def overhead(folder: Path, count: int = SCENARIOS) -> dict[str, Cell]:
    """Run `count` copies of the plain turn on the reference server; return ms per scenario."""
    run_folder = folder / "overhead"
    many = run_folder / "many"
    many.mkdir(parents=True)
    source = bundled_folder() / f"{TRIVIAL}{SUFFIX}"
    for number in range(count):
        shutil.copyfile(source, many / f"s{number:03}{SUFFIX}")
    command = [sys.executable, "-m", "harness.cli.main", "run", "--target", "reference", "many"]
    try:
        began, before = monotonic(), cpu_of_children()
        run([*command, "--json", "report.json"], run_folder, BOUND)
        took, busy = monotonic() - began, cpu_of_children() - before
        traces = traces_of(json.loads((run_folder / "report.json").read_text("utf-8")), run_folder)
    except (MeasurementFailed, OSError, ValueError) as error:
        return {"overhead": Absent(f"failed: {error}")}
    return {"overhead": figure_of(took, busy, traces)}


def figure_of(took: float, busy: float, traces: list[Trace]) -> Figure:
    """Return the overhead, in ms per scenario, of a run of `took` seconds.

    `busy` is the CPU seconds of the harness and the server, for the note: on a busy machine they
    say more than elapsed time.
    """
    servers = sum(server_time(trace) for trace in traces)
    remaining = took - servers - QUIET_SECONDS * len(traces)
    note = (
        f"{len(traces)} scenarios in {took:.1f} s, {servers:.1f} s of it the server's; "
        f"CPU {busy / len(traces) * 1000:.1f} ms each with the server's"
    )
    return Figure(remaining / len(traces) * 1000, note=note)


def server_time(trace: Trace) -> float:
    """Return the seconds of a trace spent waiting for the server; overlapping waits count once."""
    total, reached = 0.0, 0.0
    for start, end in sorted(_waits(trace.frames)):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _waits(frames: Iterable[Frame]) -> Iterable[tuple[float, float]]:
    correlation = Correlation()
    answered: set[int] = set()
    turn_asked = 0.0
    for frame in frames:
        request = correlation.feed(frame)
        if frame.kind is Kind.REQUEST and not frame.from_target:
            turn_asked = frame.at if frame.method == "turn/start" else turn_asked
        elif request is not None and frame.from_target and request.seq not in answered:
            answered.add(request.seq)
            # At 0.0, the start of the trace, the server is not started yet.
            yield (0.0 if request.method == "initialize" else request.at), frame.at
        elif frame.method == "turn/completed" and dig(frame.params, "turn", "id"):
            yield turn_asked, frame.at
