"""Running a part of the project to its end, as a process of its own with a bound."""

import os
import signal
import subprocess
from pathlib import Path

from tools.bench.client import MeasurementFailed


def cpu_of_children() -> float:
    """Return the processor seconds of all processes that we ran to their end, and that they did."""
    times = os.times()
    return times.children_user + times.children_system


def run(command: list[str], cwd: Path, bound: float) -> str:
    """Run to the end and give stdout; any exit status will do, since a red run has a time too."""
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
                # An interrupt lets the test run end its servers.
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
