"""A pytest plugin for runs whose memory is measured: writes the peak at the end of the process.

Not by `wait4`: what a process used before it became this one (the fork of a large test process)
counts there too.
"""

import atexit
import os
import re
import resource
import sys
from pathlib import Path

VARIABLE = "HARNESS_TEST_PEAK"


def peak_mib() -> float:
    """The largest resident size of this program so far, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text("ascii"), re.MULTILINE)
        if found:
            return int(found[1]) / 1024
    unit = 1024 if sys.platform == "linux" else 1024 * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if VARIABLE in os.environ:
    atexit.register(lambda: Path(os.environ[VARIABLE]).write_text(str(peak_mib()), "ascii"))
