"""Running a command to its end, within a time limit, and the CPU time of such commands."""

import os
import signal
import subprocess
from pathlib import Path

from tools.bench.client import MeasurementFailed


def cpu_of_children() -> float:
    """Return the CPU seconds of all ended child processes and their ended descendants."""
    times = os.times()
    return times.children_user + times.children_system


def run(command: list[str], cwd: Path, bound: float) -> str:
    """Run a command and return its stdout; any exit status will do, as a red run has a time too.

    After `bound` seconds interrupts it and raises MeasurementFailed.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            return process.communicate(timeout=bound)[0]
        except subprocess.TimeoutExpired as error:
            raise MeasurementFailed(f"it took more than {bound:g} s") from error
        finally:
            if process.poll() is None:
                # SIGINT, so that the run can end its servers.
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
