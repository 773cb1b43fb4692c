"""`agent exec`: from before the process is made to its first event, and to its end."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.bench.client import MeasurementFailed, monotonic
from tools.bench.stats import Absent, Cell, median

KEYS = ("exec-first", "exec-end", "exec-cpu")
RUNS = 11
BOUND = 60.0
TRIVIAL = "turns/plain-turn"


def all_of(folder: Path, runs: int = RUNS) -> dict[str, Cell]:
    """The medians of so many runs, in milliseconds."""
    here = folder / "exec"
    here.mkdir()
    try:
        taken = [_run(here, f"home-{number}") for number in range(runs)]
    except (MeasurementFailed, OSError, subprocess.TimeoutExpired) as error:
        return dict.fromkeys(KEYS, Absent(f"failed: {error}"))
    columns = zip(*taken, strict=True)
    return {key: median(column, scale=1000) for key, column in zip(KEYS, columns, strict=True)}


def _run(here: Path, home: str) -> tuple[float, float, float]:
    """The seconds to the first event and to the end, and the processor's. Raises."""
    beside = Path(sys.executable).parent / "agent"
    command: list[Any] = [beside] if beside.exists() else [sys.executable, "-m", "reference_server"]
    command += ["exec", "--json", "--skip-git-repo-check", "--scenario", TRIVIAL, "hello"]
    env = {**os.environ, "AGENT_HOME": str(here / home)}
    before, began = _children(), monotonic()
    with subprocess.Popen(
        command, cwd=here, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        seen = monotonic() - began
        rest = process.stdout.read()
        process.wait(BOUND)
    ended = monotonic() - began
    if b"thread.started" not in first or b"turn.completed" not in rest:
        raise MeasurementFailed(f"agent exec ended with status {process.returncode}: {rest!r}")
    return seen, ended, _children() - before


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system
