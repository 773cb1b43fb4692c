"""A pytest plugin that writes the peak memory of its process to a file at the end.

`wait4` would not do: its figure includes the memory of the large test process from which this one
was forked.
"""

import atexit
import os
import re
import resource
import sys
from pathlib import Path

VARIABLE = "HARNESS_TEST_PEAK"


def peak_mib() -> float:
    """Return the largest resident size of this program so far, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text("ascii"), re.MULTILINE)
        if found:
            return int(found[1]) / 1024
    unit = 1024 if sys.platform == "linux" else 1024 * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if VARIABLE in os.environ:
    atexit.register(lambda: Path(os.environ[VARIABLE]).write_text(str(peak_mib()), "ascii"))
