"""Running commands to their end, as a user does, and their output.

`harness …` and pytest run in a fork of a process that has imported them (tests/warm.py), since the
import takes longer than most test runs.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from tests import forks, warm_processes

ROOT = Path(__file__).parents[1]
COMMANDS = Path(sys.executable).parent
MARK = "HARNESS_TEST_MARK"
"""Environment variable that marks all processes of a test, so that leftovers can be found."""
ENVIRONMENT = dict(os.environ)
"""The environment before any test changes it."""
BOUND = 120.0
"""Maximum seconds of a command, on a machine under load."""


@dataclass(frozen=True, slots=True)
class Said:
    """The exit status and output of a command; `out` has both streams if run with `together`."""

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
    """Run a command to its end, with an empty standard input."""
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
    programs: Path = COMMANDS,
    bound: float = BOUND,
) -> Said:
    """Run `harness WORDS` or `python -m pytest WORDS` to its end.

    `given` is its standard input: a pipe that is filled before the command begins. `programs` is
    the folder of programs of the environment whose packages it uses. After `bound` seconds it is
    killed, and `TimeoutExpired` raised.

    The command runs in a process of its own, which is forked instead of started. Python reads its
    environment variables only at a start, so if `env` has others of them, it is started. pytest
    needs the option against rewriting assertions, as its modules are already imported.
    """
    assert program == "harness" or "--assert=plain" in words
    env = dict(os.environ if env is None else env)
    if _of_python(env) != _of_python(_environment(programs)):
        assert not given
        start: list[str | Path] = [programs / "harness"]
        if program == "pytest":
            start = [programs / "python", "-m", program]
        return run([*start, *words], cwd=cwd, env=env, together=together)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, _piped(given) as source:
        status = fork_command(
            [str(programs / program), *words],
            cwd=cwd,
            env=env,
            streams=(source, out.fileno(), out.fileno() if together else err.fileno()),
            programs=programs,
            bound=bound,
        )
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode())
    return Said(status, *said)


def fork_command(
    words: list[str],
    *,
    cwd: Path,
    env: dict[str, str],
    streams: tuple[int, int, int],
    programs: Path,
    bound: float = BOUND,
) -> int:
    """Run `harness …` or pytest in a fork, with these standard streams; return its exit status."""
    return start_fork(words, cwd=cwd, env=env, streams=streams, programs=programs).wait(bound)


def start_fork(
    words: list[str],
    *,
    cwd: Path,
    env: dict[str, str],
    streams: tuple[int, int, int],
    programs: Path = COMMANDS,
) -> Fork:
    """Start `harness …` or pytest in a fork; wait for it before another one is started."""
    return _warm(programs).start(words, cwd=cwd, env=env, streams=streams)


class Fork:
    """A running command in a fork."""

    def __init__(self, pid: int, words: list[str], warm: _Warm) -> None:
        self.pid = pid
        self._words = words
        self._warm = warm

    def wait(self, bound: float = BOUND) -> int:
        """Return its exit status. Raises `TimeoutExpired` if it runs for more than `bound` s."""
        try:
            status, left = self._warm.read_status(bound)
        except TimeoutError:
            self.kill()
            _warm.cache_clear()
            raise subprocess.TimeoutExpired(self._words, bound) from None
        assert left == 0, f"{left} worker(s) left behind by {self._words}"
        return status

    def kill(self) -> None:
        """Kill it; its end must be waited for."""
        os.kill(self.pid, signal.SIGKILL)


@contextlib.contextmanager
def _piped(given: str) -> Generator[int]:
    """Yield the reading end of a pipe that contains this text; without text, an empty file."""
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


def _environment(programs: Path) -> dict[str, str]:
    """Return the environment of the process that forks programs of this folder."""
    if programs == COMMANDS:
        return ENVIRONMENT
    # Another environment of Python is used as by its user, who sets none of Python's variables.
    return {name: value for name, value in ENVIRONMENT.items() if not name.startswith("PYTHON")}


def _of_python(env: Mapping[str, str]) -> dict[str, str]:
    """Return Python's variables, except PYTHONIOENCODING: output is always UTF-8."""
    return {
        name: value
        for name, value in env.items()
        if name.startswith("PYTHON") and name != "PYTHONIOENCODING"
    }


class _Warm:
    """A connection to a process of tests/warm.py, which has imported the harness and forks."""

    def __init__(self, programs: Path) -> None:
        python = sys.executable if programs == COMMANDS else str(programs / "python")
        self._socket = warm_processes.connect(python, _environment(programs))
        self._answers = self._socket.makefile("r")
        atexit.register(self.close)

    def start(
        self, words: list[str], *, cwd: Path, env: dict[str, str], streams: tuple[int, int, int]
    ) -> Fork:
        """Start a command with these descriptors as its standard streams."""
        self._socket.settimeout(None)
        forks.send(self._socket, {"words": words, "cwd": str(cwd), "env": env}, streams)
        return Fork(int(self._answers.readline()), words, self)

    def read_status(self, bound: float) -> tuple[int, int]:
        """Return the exit status of the command and the number of workers that it has left."""
        self._socket.settimeout(bound)
        status, left = map(int, self._answers.readline().split())
        return status, left

    def close(self) -> None:
        """Close the connection, which ends the process that serves it."""
        self._answers.close()
        self._socket.close()


@cache
def _warm(programs: Path) -> _Warm:
    return _Warm(programs)
