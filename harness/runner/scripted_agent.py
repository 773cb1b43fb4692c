"""The agent's binary as the harness plays it for an SDK: `scripted_agent.py STATE WORD…`.

It notes what it was given, prints the events of its script and ends as that says. The folder STATE
has `script.json` (a turn for each start: `writes`, `status`, `stderr`, `hangs`) and `watch.json`:
the names of variables that are noted, and digests of those that the driver had. What the SDK adds
is noted too, and nothing of the user's own environment. Each start leaves `start-N.json`. Standard
library only, and no other module of the harness: it runs in whatever environment the SDK gives it.
"""

import hashlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

# A hanging turn gives up by itself: an SDK that ends nothing must not leave it behind.
PATIENCE = 30
MAX_FILE = 256 * 1024


def main(state: Path, words: list[str]) -> int:
    """One turn."""
    number = _claimed(state)
    script: list[dict[str, Any]] = json.loads((state / "script.json").read_text("utf-8"))
    turn = script[min(number, len(script)) - 1] if script else {}
    said = sys.stdin.buffer.read().decode("utf-8", "backslashreplace")
    noted = {
        "argv": words,
        "cwd": os.getcwd(),
        "env": _environment(json.loads((state / "watch.json").read_text("utf-8"))),
        "stdin": said,
        "files": _files(words),
    }
    part = state / f"start-{number}.part"
    part.write_text(json.dumps(noted), "utf-8")
    part.rename(state / f"start-{number}.json")
    for event in turn.get("writes", []):
        sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()
    if turn.get("hangs"):
        signal.alarm(PATIENCE)
        with (state / "hanging").open("wb", buffering=0) as pipe:
            pipe.write(b"\n")
        signal.pause()
    sys.stderr.write(turn.get("stderr", ""))
    return int(turn.get("status", 0))


def _claimed(state: Path) -> int:
    number = 1
    while True:
        try:
            os.close(os.open(state / f"claim-{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            number += 1
        else:
            return number


def _environment(watched: dict[str, Any]) -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name in watched["names"]
        or (
            name not in (*_OF_SHELLS, *watched["unnoted"])
            and _digest(value) != watched["known"].get(name)
        )
    }


# Shells set these for every program.
_OF_SHELLS = ("_", "OLDPWD", "PWD", "SHLVL")


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()


def _files(words: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in words:
        try:
            if os.path.isfile(word) and os.path.getsize(word) <= MAX_FILE:
                found[word] = json.loads(Path(word).read_bytes())
        except (OSError, ValueError):
            continue
    return found


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
