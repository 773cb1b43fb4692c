"""One process that imports all test modules of a run, and forks its workers (`pytest -n 8`).

Importing them takes half of a worker's collection. A worker's pytest then finds each module as it
would have imported it: with rewritten assertions, from the same path.
"""

import contextlib
import gc
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.pathlib import import_path

from tests import forks, hypothesis_tables, warm_processes, worker_forks


def fork_workers(config: pytest.Config) -> None:
    """Have the workers of this run forked from a process that has imported its test modules."""
    config.get_terminal_writer().flush()
    warm_processes.share()
    ours, theirs = socket.socketpair()
    if os.fork():
        theirs.close()
        worker_forks.fork_workers(ours)
        return
    ours.close()
    # They write to descriptors that the forks close, and then give to other files.
    logging.root.handlers.clear()
    try:
        import_tests(config)
        if worker := worker_forks.attend(theirs, set()):
            forks.begin(worker["words"], worker["env"])
            forks.leave(worker_forks.be_worker)
    finally:
        os._exit(0)


def import_tests(config: pytest.Config) -> None:
    """Import the test modules that the run's arguments name."""
    gc.disable()
    draws = False
    for path in module_paths(config):
        # What cannot be imported is told by the worker that tries.
        with contextlib.suppress(Exception):
            module = import_path(path, root=config.rootpath, consider_namespace_packages=False)
            draws |= hasattr(module, "given")
    if draws:
        hypothesis_tables.make_tables()
    gc.freeze()
    gc.enable()


def module_paths(config: pytest.Config) -> Iterator[Path]:
    """Yield the paths of the test modules that the run's arguments name."""
    for argument in config.args:
        path = config.invocation_params.dir / argument.partition("::")[0]
        yield from [path] if path.is_file() else sorted(path.rglob("test_*.py"))
