"""The agent's binary as an SDK starts it for the harness: `scripted_agent.py STATE WORD…`.

It notes what it was given, prints the events of its script and ends as that says. The folder STATE
has `script.json` (a turn for each start: `writes`, `status`, `stderr`, `hangs`) and `watch.json`:
the names of variables that are noted, and digests of those that the driver had. What the SDK adds
is noted too, and nothing of the user's own environment. Each start leaves `start-N.json`.

Where STATE has `command.json`, the words of a real agent, that is run instead and ends this program
as it ended; what it writes passes through here, and is noted in `wrote-N.jsonl`, its end in
`ended-N.json`. Standard library only, and no other module of the harness: it runs in whatever
environment the SDK gives it.
"""

import contextlib
import ctypes
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

# A hanging turn gives up by itself: an SDK that ends nothing must not leave it behind.
PATIENCE = 30
MAX_FILE = 256 * 1024
# Of what an agent writes in one turn so much is noted, and nothing where it is more.
MAX_WROTE = 64 * 1024 * 1024
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1


def main(state: Path, words: list[str]) -> int:
    """One turn."""
    number = _claimed(state)
    script: list[dict[str, Any]] = json.loads((state / "script.json").read_text("utf-8"))
    turn = script[min(number, len(script)) - 1] if script else {}
    given = sys.stdin.buffer.read()
    noted = {
        "argv": words,
        "cwd": os.getcwd(),
        "env": _environment(json.loads((state / "watch.json").read_text("utf-8"))),
        "stdin": given.decode("utf-8", "backslashreplace"),
        "files": _files(words),
    }
    part = state / f"start-{number}.part"
    part.write_text(json.dumps(noted), "utf-8")
    part.rename(state / f"start-{number}.json")
    command = state / "command.json"
    if command.exists():
        return _real([*json.loads(command.read_text("utf-8")), *words], given, state, number)
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


def _real(command: list[str], given: bytes, state: Path, number: int) -> int:
    """Run the real agent in the place of this program: same words, environment, input and end."""
    running: list[subprocess.Popen[bytes]] = []
    for one in _PASSED_ON:
        signal.signal(one, lambda received, _: [child.send_signal(received) for child in running])
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=_end_with_parent
    )
    running.append(child)
    stdin, stdout = child.stdin, child.stdout
    if stdin is None or stdout is None:
        raise RuntimeError("a child that is started with pipes has them")
    threading.Thread(target=_feed, args=(stdin, given), daemon=True).start()
    _pass_on(stdout, state / f"wrote-{number}.jsonl")
    status = child.wait()
    part = state / f"ended-{number}.part"
    part.write_text(json.dumps(status), "utf-8")
    part.rename(state / f"ended-{number}.json")
    if status < 0:
        with contextlib.suppress(OSError):  # SIGKILL cannot be handled anyway.
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


def _end_with_parent() -> None:
    """On Linux a child that is killed with this program, as the agent alone would be."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _feed(stdin: IO[bytes], given: bytes) -> None:
    with contextlib.suppress(OSError):
        stdin.write(given)
        stdin.close()


def _pass_on(stdout: IO[bytes], notes: Path) -> None:
    """Give each line to the SDK, noted before."""
    noted = 0
    with notes.open("ab", buffering=0) as file:
        for line in stdout:
            noted += len(line)
            if noted <= MAX_WROTE:
                file.write(line)
            else:
                file.truncate(0)
            try:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
            except OSError:
                stdout.close()  # Nobody reads any more: the agent must notice, too.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return


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
        except (OSError, ValueError, RecursionError):
            continue
    return found


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
