"""Agent program that an SDK starts for the harness: `scripted_agent.py STATE WORD…`.

It notes its input, prints the events of its script and exits with the script's status. The folder
STATE has `script.json` (a turn for each start: `writes`, `status`, `stderr`, `hangs`) and
`watch.json`: the names of variables to note, and digests of those that the driver had. Variables
that the SDK adds are noted too, but nothing of the user's own environment. Each start leaves
`start-N.json`.

If STATE has `command.json`, the command line of a real agent, that agent is run instead, and this
program exits as it did; its output passes through here, and is noted in `wrote-N.jsonl`, its exit
in `ended-N.json`. Standard library only, and no other module of the harness: it runs in whatever
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

# A hanging turn ends after this time, in case the SDK never ends its process.
MAX_HANG_SECONDS = 30
MAX_FILE_BYTES = 256 * 1024
# Maximum output of a turn that is noted; nothing is noted of a longer one.
MAX_NOTED_BYTES = 64 * 1024 * 1024
_FORWARDED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1


def main(state: Path, words: list[str]) -> int:
    """Play one turn, and return its exit status."""
    number = _claim_number(state)
    script: list[dict[str, Any]] = json.loads((state / "script.json").read_text("utf-8"))
    turn = script[min(number, len(script)) - 1] if script else {}
    stdin_bytes = sys.stdin.buffer.read()
    notes = {
        "argv": words,
        "cwd": os.getcwd(),
        "env": _environment(json.loads((state / "watch.json").read_text("utf-8"))),
        "stdin": stdin_bytes.decode("utf-8", "backslashreplace"),
        "files": _files(words),
    }
    part = state / f"start-{number}.part"
    part.write_text(json.dumps(notes), "utf-8")
    part.rename(state / f"start-{number}.json")
    command = state / "command.json"
    if command.exists():
        return _run_real_agent(
            [*json.loads(command.read_text("utf-8")), *words], stdin_bytes, state, number
        )
    for event in turn.get("writes", []):
        sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()
    if turn.get("hangs"):
        signal.alarm(MAX_HANG_SECONDS)
        with (state / "hanging").open("wb", buffering=0) as pipe:
            pipe.write(b"\n")
        signal.pause()
    sys.stderr.write(turn.get("stderr", ""))
    return int(turn.get("status", 0))


def _run_real_agent(command: list[str], stdin_bytes: bytes, state: Path, number: int) -> int:
    """Run the real agent with the same words, environment and input; exit as it does."""
    running: list[subprocess.Popen[bytes]] = []
    for number_to_forward in _FORWARDED_SIGNALS:
        signal.signal(
            number_to_forward,
            lambda received, _: [child.send_signal(received) for child in running],
        )
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=_end_with_parent
    )
    running.append(child)
    stdin, stdout = child.stdin, child.stdout
    if stdin is None or stdout is None:
        raise RuntimeError("a child that is started with pipes has them")
    threading.Thread(target=_feed, args=(stdin, stdin_bytes), daemon=True).start()
    _pass_on(stdout, state / f"wrote-{number}.jsonl")
    status = child.wait()
    part = state / f"ended-{number}.part"
    part.write_text(json.dumps(status), "utf-8")
    part.rename(state / f"ended-{number}.json")
    if status < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler.
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


def _end_with_parent() -> None:
    """Make a child on Linux die with this program, as the agent alone would."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _feed(stdin: IO[bytes], content: bytes) -> None:
    with contextlib.suppress(OSError):
        stdin.write(content)
        stdin.close()


def _pass_on(stdout: IO[bytes], notes: Path) -> None:
    """Note each line of the agent's output, and pass it on to the SDK."""
    noted_bytes = 0
    with notes.open("ab", buffering=0) as file:
        for line in stdout:
            noted_bytes += len(line)
            if noted_bytes <= MAX_NOTED_BYTES:
                file.write(line)
            else:
                file.truncate(0)
            try:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
            except OSError:
                stdout.close()  # The reader is gone; the agent must see its pipe close.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return


def _claim_number(state: Path) -> int:
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
            name not in (*_SHELL_VARIABLES, *watched["unnoted"])
            and _digest(value) != watched["known"].get(name)
        )
    }


# Shells set these for every program.
_SHELL_VARIABLES = ("_", "OLDPWD", "PWD", "SHLVL")


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()


def _files(words: list[str]) -> dict[str, Any]:
    contents: dict[str, Any] = {}
    for word in words:
        try:
            if os.path.isfile(word) and os.path.getsize(word) <= MAX_FILE_BYTES:
                contents[word] = json.loads(Path(word).read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
    return contents


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
