"""Start of the agent: finding its program, running it, and the errors of both.

It runs without a shell, as the leader of a process session of its own, with three pipes.
"""

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence

from agent_sdk.errors import AgentNotFoundError, ConfigError
from agent_sdk.process import Process


def start(
    program: str,
    words: Sequence[str],
    environment: Mapping[str, str],
    prompt: bytes,
    clean_up: Callable[[], None],
) -> Process:
    """Start the agent; an event loop must be running.

    `clean_up` is called once, when the agent has ended or cannot be started. Raises
    AgentNotFoundError, or ConfigError if the options are too long.
    """
    try:
        child = _popen(find(program, environment), words, environment)
        return Process(child, prompt, clean_up)
    except BaseException:
        clean_up()
        raise


def _popen(
    path: str, words: Sequence[str], environment: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            [path, *words],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        reason = "the interpreter that its first line names is missing"
        raise AgentNotFoundError(f"{path} cannot be run: {reason}", path) from error
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise ConfigError("the options of the agent are too long for a command line") from error
        raise AgentNotFoundError(f"{path} cannot be run: {error.strerror}", path) from error


def find(program: str, environment: Mapping[str, str]) -> str:
    """Return the path of a program; look up a bare name on the agent's PATH, then on our own.

    Raises AgentNotFoundError.
    """
    if os.path.dirname(program):
        if not os.path.exists(program):
            raise AgentNotFoundError(f"there is no agent at {program}", program)
        return program
    for path in (environment.get("PATH"), os.environ.get("PATH", os.defpath)):
        # A relative or empty entry would let the working directory choose the program.
        entries = filter(os.path.isabs, (path or "").split(os.pathsep))
        if path_found := shutil.which(program, path=os.pathsep.join(entries)):
            return path_found
    raise AgentNotFoundError(
        f"there is no `{program}` on PATH; give agent_path the path of the program", program
    )
