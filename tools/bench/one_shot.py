"""The time of `agent exec` from spawn to its first event and to its end."""

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
    """Return the medians of several runs in milliseconds; after a failure, its reason."""
    exec_folder = folder / "exec"
    exec_folder.mkdir()
    try:
        durations = [_run(exec_folder, f"home-{number}") for number in range(runs)]
    except (MeasurementFailed, OSError, subprocess.TimeoutExpired) as error:
        return dict.fromkeys(KEYS, Absent(f"failed: {error}"))
    columns = zip(*durations, strict=True)
    return {key: median(column, scale=1000) for key, column in zip(KEYS, columns, strict=True)}


def _run(folder: Path, home: str) -> tuple[float, float, float]:
    """Return the seconds to the first event and to the end, and the CPU seconds; or raise."""
    installed = Path(sys.executable).parent / "agent"
    command: list[Any] = (
        [installed] if installed.exists() else [sys.executable, "-m", "reference_server"]
    )
    command += ["exec", "--json", "--skip-git-repo-check", "--scenario", TRIVIAL, "hello"]
    env = {**os.environ, "AGENT_HOME": str(folder / home)}
    before, began = _children(), monotonic()
    with subprocess.Popen(
        command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        first_event_seconds = monotonic() - began
        rest = process.stdout.read()
        process.wait(BOUND)
    ended = monotonic() - began
    if b"thread.started" not in first or b"turn.completed" not in rest:
        raise MeasurementFailed(f"agent exec ended with status {process.returncode}: {rest!r}")
    return first_event_seconds, ended, _children() - before


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system
