"""Peak memory of a piece of code, measured in a process of its own.

The peak comes from /proc if possible: `ru_maxrss` includes the memory of the forking test process.
"""

import subprocess
import sys

_MEASURING = """
import re, resource, sys
from pathlib import Path

def _peak():
    status = Path("/proc/self/status")
    found = status.exists() and re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text())
    if found:
        return int(found[1])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "linux" else most // 1024

def begin():
    global _idle
    _idle = _peak()

def end(*words):
    print(*words, (_peak() - _idle) // 1024)
"""


def peak_of(code: str, *arguments: str) -> tuple[list[str], int]:
    """Run code that calls `begin()`, then `end(*words)`; return the words and the MiB of growth."""
    command = [sys.executable, "-c", _MEASURING + code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    *words, peak = done.stdout.split()
    return words, int(peak)
