"""Counts of a process's open file descriptors by kind, on Linux only.

Files below the server's home are not counted: a server may keep files of each loaded thread open,
and threads stay loaded, so their number may grow.
"""

import os
from collections import Counter
from pathlib import Path


def count_descriptors(pid: int, home: Path) -> Counter[str] | None:
    """Return a count for each kind (`pipe`, `socket`, `file`, `device`); None if unknown."""
    counts = Counter[str]()
    home_prefix = f"{home.resolve()}{os.sep}"
    folder = f"/proc/{pid}/fd"
    try:
        links = os.listdir(folder)
    except OSError:
        return None
    for link in links:
        try:
            # Paths as text, for speed: there may be hundreds, and this runs after each scenario.
            target = os.readlink(f"{folder}/{link}")
        except OSError:
            continue  # It was closed after the folder was listed.
        if target.startswith("/"):
            if not target.startswith(home_prefix):
                counts["device" if target.startswith("/dev/") else "file"] += 1
        else:
            counts[target.split(":", 1)[0]] += 1
    return counts
