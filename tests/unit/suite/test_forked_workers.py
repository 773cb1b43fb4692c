"""The workers of a test run are forks of a process that has imported the test modules.

They share a process that has imported the harness, too, which forks their commands.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.processes import BOUND, ENVIRONMENT, ROOT, run

CONFTEST = """
from tests.imported_tests import fork_workers

def pytest_xdist_setupnodes(config):
    fork_workers(config)
"""
MODULE = """
import logging
import os

import pytest

IMPORTED_IN = os.getpid()

@pytest.mark.parametrize("number", range(4))
def test_is_told(number):
    with open({told!r}, "a") as told:
        files = [one for one in logging.root.handlers if isinstance(one, logging.FileHandler)]
        print(os.getpid(), os.getppid(), IMPORTED_IN, len(files), file=told)

def test_fails():
    left = [1]
    assert left == [2]

def test_dies():
    os._exit(3)
"""

COMMAND = """
from tests.processes import run_warm

def test_commands(tmp_path):
    for _ in range(2):
        said = run_warm("pytest", "--assert=plain", "-q", {inner!r}, cwd=tmp_path)
        assert said.status == 0, said.out
"""
INNER = """
import os

import psutil

def test_is_told():
    server = psutil.Process(os.getppid())
    with open({told!r}, "a") as told:
        print(server.pid, server.ppid(), file=told)
"""


@pytest.mark.slow
@pytest.mark.socket
def test_all_workers_share_one_import_of_a_test_module(tmp_path: Path) -> None:
    told = tmp_path / "told"
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_one.py").write_text(MODULE.format(told=str(told)))
    (tmp_path / "test_broken.py").write_text("import no_such_module")
    said = run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "2",
            "--dist",
            "each",
            "--continue-on-collection-errors",
        ],
        cwd=tmp_path,
        env={**ENVIRONMENT, "PYTHONPATH": str(ROOT)},
        together=True,
    )
    forks = {tuple(map(int, line.split())) for line in told.read_text().splitlines()}
    workers, parents, importers, log_files = zip(*forks, strict=True)
    assert len(set(workers)) >= 2
    assert set(parents) == set(importers)
    assert len(set(importers)) == 1
    assert os.getpid() not in parents
    # The one of the worker's own pytest; another would write to a descriptor of something else.
    assert set(log_files) == {1}
    assert "assert [1] == [2]" in said.out
    assert "No module named 'no_such_module'" in said.out
    assert "replacing crashed worker" in said.out
    assert said.out.count("test session starts") == 1
    assert said.status == 1


@pytest.mark.slow
@pytest.mark.socket
@pytest.mark.parametrize("workers", [0, 2])
def test_commands_of_all_workers_are_forks_of_one_process(tmp_path: Path, workers: int) -> None:
    told, inner = tmp_path / "told", tmp_path / "inner.py"
    inner.write_text(INNER.format(told=str(told)))
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_one.py").write_text(COMMAND.format(inner=str(inner)))
    said = run(
        [sys.executable, "-m", "pytest", "-n", str(workers), "--dist", "each"],
        cwd=tmp_path,
        env={**ENVIRONMENT, "PYTHONPATH": str(ROOT)},
        together=True,
    )
    assert said.status == 0, said.out
    forks = [tuple(map(int, line.split())) for line in told.read_text().splitlines()]
    servers, processes = map(set, zip(*forks, strict=True))
    assert (len(forks), len(servers)) == (2 * (workers or 1), workers or 1)
    (process,) = processes
    # They end with the run, the keeper after its controller.
    with suppress(psutil.NoSuchProcess):
        psutil.Process(process).wait(BOUND)
