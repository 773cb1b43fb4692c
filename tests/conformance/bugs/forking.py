"""Starting servers with bugs as forks of the test process, which has imported the server.

Importing takes longer than most plays. A fork has the streams, working directory, environment and
session that a started program would have.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import faulthandler
import gc
import importlib
import io
import logging
import os
import random
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, NoReturn

from reference_server.sandbox.launcher import SHARED
from tests.conformance.bugs.serving import main
from tests.warm_agent import modules

FIRST_UNUSED_DESCRIPTOR = 3


@contextmanager
def forked(program: str, main: Callable[..., int] = main) -> Generator[None]:
    """Make `subprocess.Popen` fork instead of starting `python PROGRAM NAME …` in the block.

    The fork calls `main` with the arguments after the program; its result is the exit status.
    """
    _import_server()
    start = subprocess.Popen.__init__

    def fork(self: subprocess.Popen[Any], args: Any, *rest: Any, **options: Any) -> None:
        if not isinstance(args, str) and list(args[:2]) == [sys.executable, program]:
            assert not options.get("pass_fds")
            options["preexec_fn"] = partial(_become, main, args[1:], options["env"])
        start(self, args, *rest, **options)

    subprocess.Popen.__init__ = fork
    try:
        yield
    finally:
        subprocess.Popen.__init__ = start


@cache
def _import_server() -> None:
    """Import all modules of the server, so that no fork has to."""
    for name in modules():
        importlib.import_module(name)


def _become(main: Callable[..., int], words: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    """Run the server in the forked child and exit; its streams are already set."""
    # What the parent has is never finalized here: it would close descriptors of the same numbers.
    gc.freeze()
    status = 1
    try:
        _forget_the_parent()
        os.environ.clear()
        os.environ.update(env)
        sys.argv[:] = words
        status = contextvars.Context().run(main, *words[1:])
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _forget_the_parent() -> None:
    atexit._clear()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # As Python does when it starts; Popen has taken it back for another program.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    SHARED._process = SHARED._channel = None
    faulthandler.disable()
    # Among them is the pipe on which Popen waits until another program has begun.
    os.closerange(FIRST_UNUSED_DESCRIPTOR, os.sysconf("SC_OPEN_MAX"))
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), "utf-8")
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8")
    sys.stderr = io.TextIOWrapper(
        io.FileIO(2, "w", closefd=False), "utf-8", "backslashreplace", line_buffering=True
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    asyncio.events._set_running_loop(None)
    logging.root.handlers.clear()
    warnings.simplefilter("ignore")
    random.seed()
