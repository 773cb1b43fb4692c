"""Commands that tests run to their end, as a user does, and what they printed.

`harness …` and pytest run in a fork of a process that has imported them (warm), since to import
them takes longer than most of what tests ask.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[1]
COMMANDS = Path(sys.executable).parent
MARK = "HARNESS_TEST_MARK"
"""Everything that a test starts carries this variable, so that what stays behind can be found."""
ENVIRONMENT = dict(os.environ)
"""Environment before any test changes it."""
BOUND = 120.0
"""Seconds for a command, on a machine under load."""


@dataclass(frozen=True, slots=True)
class Said:
    """The exit status of a command, and what it printed; `out` has both streams if `together`."""

    status: int
    out: str
    err: str = ""


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    together: bool = False,
) -> Said:
    """Run a command to its end, with nothing on its standard input."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if together else subprocess.PIPE,
        encoding="utf-8",
        timeout=BOUND,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr or "")


def run_warm(
    program: Literal["harness", "pytest"],
    *words: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    together: bool = False,
    given: str = "",
) -> Said:
    """Run `harness WORDS` or `python -m pytest WORDS` to its end.

    `given` comes to it from a pipe, which holds all of it before the command begins.

    It is the same command in a process of its own, but one that was forked and not started anew.
    What Python asks of its environment as it starts is not asked again: with other settings of
    Python it is started. pytest must be told not to rewrite assertions, as what it would rewrite
    is imported.
    """
    assert program == "harness" or "--assert=plain" in words
    env = dict(os.environ if env is None else env)
    if _of_python(env) != _of_python(ENVIRONMENT):
        assert not given
        start = [COMMANDS / "harness"] if program == "harness" else [sys.executable, "-m", program]
        return run([*start, *words], cwd=cwd, env=env, together=together)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, _piped(given) as source:
        status = _warm().run(
            [str(COMMANDS / program), *words],
            cwd=cwd,
            env=env,
            streams=(source, out.fileno(), out.fileno() if together else err.fileno()),
        )
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode())
    return Said(status, *said)


@contextlib.contextmanager
def _piped(given: str) -> Generator[int]:
    """Give the reading end of a pipe that holds this text alone; without text, an empty file."""
    if not given:
        with open(os.devnull, "rb") as nothing:
            yield nothing.fileno()
        return
    source, sink = os.pipe()
    try:
        os.set_blocking(sink, False)
        assert os.write(sink, given.encode()) == len(given.encode()), "more than a pipe holds"
        os.close(sink)
        yield source
    finally:
        os.close(source)


def _of_python(env: Mapping[str, str]) -> dict[str, str]:
    """PYTHONIOENCODING aside: what is printed is UTF-8."""
    return {
        name: value
        for name, value in env.items()
        if name.startswith("PYTHON") and name != "PYTHONIOENCODING"
    }


class _Warm:
    """A process that has imported the harness, and forks for each command."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(ROOT / "tests" / "warm.py"), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            # Nothing is of the test that needs it first, which it outlives.
            cwd=ROOT,
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self._answers = self._socket.makefile("r")
        atexit.register(self.close)

    def run(
        self, words: list[str], *, cwd: Path, env: dict[str, str], streams: tuple[int, int, int]
    ) -> int:
        """The exit status of a command, whose standard streams are these descriptors."""
        asked = json.dumps({"words": words, "cwd": str(cwd), "env": env}).encode() + b"\n"
        self._socket.settimeout(None)
        sent = socket.send_fds(self._socket, [asked], list(streams))
        self._socket.sendall(asked[sent:])
        pid = int(self._answers.readline())
        self._socket.settimeout(BOUND)
        try:
            status, left = map(int, self._answers.readline().split())
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            _warm.cache_clear()
            raise subprocess.TimeoutExpired(words, BOUND) from None
        assert left == 0, f"{left} worker(s) left behind by {words}"
        return status

    def close(self) -> None:
        """It ends when it is asked nothing more."""
        self._answers.close()
        self._socket.close()
        self._process.wait()


@cache
def _warm() -> _Warm:
    return _Warm()
