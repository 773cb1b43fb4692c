"""Starting `agent …` as a fork of a process that has imported it (tests/warm_agent.py).

Importing it takes longer than most tests of the command. A test about starting itself, imports or
memory uses `subprocess.Popen`.
"""

from __future__ import annotations

import atexit
import inspect
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, AnyStr
from unittest.mock import patch

import anyio
from anyio.abc import Process

from tests import forks, warm_agent
from tests.processes import COMMANDS, ENVIRONMENT, ROOT

_MODULE = ["-m", "reference_server"]
_MAIN = str(ROOT / "reference_server" / "__main__.py")
_parameters_of = inspect.signature(subprocess.Popen[bytes]._execute_child)  # pyright: ignore[reportAttributeAccessIssue]


class AgentProcess(subprocess.Popen[AnyStr]):
    """A `subprocess.Popen` that forks `agent …` if a fork is like a start; else it starts."""

    main: str = "reference_server.cli:main"
    """The function that a fork runs, `module:function`; its module is imported before the fork."""

    def _execute_child(self, *given: Any) -> None:
        settings = _parameters_of.bind(self, *given).arguments
        env = dict(os.environ if settings["env"] is None else settings["env"])
        command = None if _is_special(settings, env) else self._split(settings["args"])
        if command is None:
            super()._execute_child(*given)  # pyright: ignore[reportAttributeAccessIssue]
            return
        user, python, words, shown = command
        inherited = [settings[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        streams = [number if one == -1 else one for number, one in enumerate(inherited)]
        path = env.get("PYTHONPATH", "") if user else ENVIRONMENT.get("PYTHONPATH", "")
        self.pid = _warm(path, *user, python).fork(
            {
                "main": self.main,
                "words": words,
                "shown": shown,
                "env": env,
                "cwd": os.fspath(settings["cwd"] or os.getcwd()),
                "umask": settings["umask"],
                "session": settings["start_new_session"],
                "group": settings["process_group"],
                "places": [0, 1, 2, *settings["pass_fds"]],
            },
            [*streams, *settings["pass_fds"]],
        )
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(settings[name] for name in pipes))  # pyright: ignore[reportAttributeAccessIssue]

    def _split(self, args: Any) -> tuple[list[str], str, list[str], list[str]] | None:
        """Split a command into what changes the user, Python, and the words of `agent`, as called
        and as shown; None if it is another command.
        """
        words = [os.fspath(word) for word in args]
        if words[0] == str(COMMANDS / "agent"):
            return [], sys.executable, words, [sys.executable, *words]
        at = words.index("-m") if "-m" in words else 0
        user, python = words[: at - 1], words[at - 1]
        if at == 0 or words[at : at + 2] != _MODULE or (user and user[0] != "setpriv"):
            return None
        return user, python, [_MAIN, *words[at + 2 :]], words[at - 1 :]


def run_agent(command: Sequence[Any], **settings: Any) -> subprocess.CompletedProcess[Any]:
    """Run `agent …` to its end, as `subprocess.run` does."""
    with patch.object(subprocess, "Popen", AgentProcess):
        return subprocess.run(command, **settings)


async def open_agent(command: Sequence[Any], **settings: Any) -> Process:
    """Start `agent …` as `anyio.open_process` does."""
    with patch.object(subprocess, "Popen", AgentProcess):
        return await anyio.open_process(command, **settings)


def _is_special(settings: Mapping[str, Any], env: Mapping[str, str]) -> bool:
    """Return whether a fork cannot be like a process with these settings."""
    unset = ("executable", "preexec_fn", "gid", "gids", "uid")
    of_python = {name for name in env if re.match("PYTHON(?!PATH|_)", name)}
    return (
        not warm_agent.is_possible()
        or settings["shell"]
        or not (settings["close_fds"] and settings["restore_signals"])
        or any(settings[name] is not None for name in unset)
        or not os.path.isdir(settings["cwd"] or ".")
        or any(env[name] != ENVIRONMENT.get(name) for name in of_python)
    )


class _Warm:
    """A process of tests/warm_agent.py that forks for each request."""

    def __init__(self, path: str, words: Sequence[str]) -> None:
        self._socket, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [*words, "-m", "tests.warm_agent", str(theirs.fileno()), warm_agent.PADDING],
            pass_fds=[theirs.fileno()],
            # It outlives the test that starts it, so it takes nothing from that test.
            cwd=ROOT,
            env={**ENVIRONMENT, "PYTHONPATH": path, warm_agent.PADDED: warm_agent.PADDING},
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self._answers = self._socket.makefile("r")
        self._lock = threading.Lock()
        atexit.register(self.close)

    def fork(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        """Fork an `agent …` with these descriptors and return its process id."""
        with self._lock:
            forks.send(self._socket, request, descriptors)
            return int(self._answers.readline())

    def close(self) -> None:
        """Close the connection, which ends the process, and wait for it."""
        self._answers.close()
        self._socket.close()
        self._process.wait()


@cache
def _warm(path: str, *words: str) -> _Warm:
    """Return the process for a user's Python with this PYTHONPATH."""
    return _Warm(path, words)
