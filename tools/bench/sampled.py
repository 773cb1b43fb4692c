"""A run of `harness run` that samples its CPU time: `python -m tools.bench.sampled OUT …`.

At each sample, the CPU time that a thread used since the previous one is counted for the cause
(module `causes`) of its present stack. A process of its own, so that all CPU time is the run's.
Linux only.
"""

import json
import os
import resource
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from tools.bench.causes import cause_of

TICK = 0.01
"""Seconds between two samples."""
SWITCH = 0.0005
"""Switch interval of the interpreter: seconds after which a computing thread yields."""
WAITING = ("selectors.py:select", "threading.py:wait")
"""Innermost functions of waiting threads."""
ARGUMENTS = (
    *("-c", os.devnull, "--rootdir", ".", "--noconftest", "-q", "--no-header", "--harness-run"),
    *("--disable-plugin-autoload", "-p", "xdist.plugin", "-p", "harness.cli.plugin"),
    *("-p", "no:doctest", "--assert=plain", "-o", "python_files="),
)
"""The pytest options of `harness run` (commands/run_options), but without workers."""


class Sampler:
    """Sampler of all threads but its own, until `stop`.

    `seconds` is the CPU time by cause, `own` the CPU seconds of the sampling itself.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.own = 0.0
        self._used: dict[int, float] = {}
        self._busy_with: dict[int, str] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def start(self) -> None:
        """Start sampling in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop sampling and wait for the thread to end."""
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        own = threading.get_native_id()
        while not self._over.wait(TICK):
            stacks = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
            for thread in threading.enumerate():
                number, identity = thread.native_id, thread.ident
                if number is None or identity is None or number == own:
                    continue
                used = _cpu_of(number)
                spent = used - self._used.get(number, 0.0)
                self._used[number] = used
                cause = self._cause(number, _names(stacks.get(identity)))
                if spent > 0:
                    self.seconds[cause] = self.seconds.get(cause, 0.0) + spent
        self.own = time.thread_time()

    def _cause(self, thread: int, stack: list[str]) -> str:
        """Return the cause of a thread's CPU time since the previous sample.

        If the thread waits now, that is the cause seen at the previous sample, if it was busy then.
        """
        if stack and stack[0].endswith(WAITING):
            return self._busy_with.pop(thread, None) or cause_of(stack)
        cause = self._busy_with[thread] = cause_of(stack)
        return cause


def _names(frame: FrameType | None) -> list[str]:
    """Return the functions of a stack as `path:function`, the innermost first."""
    names: list[str] = []
    while frame is not None:
        names.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")
        frame = frame.f_back
    return names


def _cpu_of(thread: int) -> float:
    try:
        return int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0  # The thread has ended.


def main(out: str, arguments: list[str]) -> int:
    """Run pytest with the plugin, write its times and CPU causes to `out`, return its status."""
    began, sampler = time.monotonic(), Sampler()
    sys.setswitchinterval(SWITCH)
    sampler.start()
    from harness.cli.suite.__main__ import main as run

    sys.argv[1:] = [*ARGUMENTS, *arguments]
    status: object = 0
    try:
        run()
    except SystemExit as end:
        status = end.code
    sampler.stop()
    own_usage, child_usage = (
        resource.getrusage(resource.RUSAGE_SELF),
        resource.getrusage(resource.RUSAGE_CHILDREN),
    )
    result = {
        "wall": time.monotonic() - began,
        "harness": own_usage.ru_utime + own_usage.ru_stime - sampler.own,
        "children": child_usage.ru_utime + child_usage.ru_stime,
        "causes": sampler.seconds,
    }
    Path(out).write_text(json.dumps(result), "utf-8")
    return status if isinstance(status, int) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
