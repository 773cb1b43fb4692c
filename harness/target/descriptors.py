"""What a process holds open, by kind, where the system tells it (Linux; elsewhere nothing is said).

Files below the server's home are not counted: a server may keep the files of each loaded thread
open, and threads stay loaded, so that these grow by right.
"""

import os
from collections import Counter
from pathlib import Path


def held(pid: int, home: Path) -> Counter[str] | None:
    """Kind (`pipe`, `socket`, `anon_inode`, `file`, `device`) -> how many; None if unknown."""
    found = Counter[str]()
    own = f"{home.resolve()}{os.sep}"
    folder = f"/proc/{pid}/fd"
    try:
        links = os.listdir(folder)
    except OSError:
        return None
    for link in links:
        try:
            # As text: there may be hundreds, and this is done after each scenario.
            target = os.readlink(f"{folder}/{link}")
        except OSError:
            continue  # Closed since the folder was read.
        if target.startswith("/"):
            if not target.startswith(own):
                found["device" if target.startswith("/dev/") else "file"] += 1
        else:
            found[target.split(":", 1)[0]] += 1
    return found
