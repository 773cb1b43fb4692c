"""Descendants of a server's process, found in every way."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

from harness.client.target import process_tree
from harness.client.target.process_tree import MARK, Descendants, marked_processes, wait

pytestmark = [pytest.mark.socket]

WAITS = "import sys; sys.stdin.read()"
# Its child, and the child of that one, each say who they are.
PARENT = '''
import subprocess, sys
INNER = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
OUTER = f"""import os, subprocess, sys
print(os.getpid(), flush=True)
subprocess.run([sys.executable, '-c', {INNER!r}])"""
subprocess.run([sys.executable, "-c", OUTER])
'''


def started(script: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@pytest.fixture(params=["listed by the kernel", "asked for their parents"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = request.param == "listed by the kernel"
    if listed and not process_tree.LISTS_CHILDREN:
        pytest.skip("this kernel lists no children")
    monkeypatch.setattr(process_tree, "LISTS_CHILDREN", listed)


@pytest.mark.parametrize("looked", [True, False])
def test_children_of_children_are_found_when_looked_for_before_they_were_born_and_when_not(
    *, looked: bool
) -> None:
    ours = Descendants(os.getpid())
    if looked:
        ours.find_living()
    with started(PARENT) as process:
        assert process.stdout is not None
        theirs = Descendants(process.pid)
        born = {int(process.stdout.readline())}
        if looked:
            assert set(theirs.find_living()) >= born
        born.add(int(process.stdout.readline()))
        for _ in range(2):
            assert set(theirs.find_living()) == born
            assert set(ours.find_living()) >= {process.pid, *born}
        process.communicate()
    assert ours.find_living().keys().isdisjoint(born)
    assert theirs.find_living() == {}


def test_child_that_has_ended_and_was_not_reaped_is_not_living() -> None:
    ours = Descendants(os.getpid())
    with started(WAITS) as process:
        child = ours.find_living()[process.pid]
        assert process.stdin is not None
        process.stdin.close()
        wait([child], 10)
        assert child.status() == psutil.STATUS_ZOMBIE
        assert process.pid not in ours.find_living()


def test_marked_process_is_found_by_the_beginning_of_its_mark() -> None:
    env = {**os.environ, MARK: f"test-{os.getpid()}:1", "BEFORE": f"{MARK}=other"}
    with subprocess.Popen(
        [sys.executable, "-c", f"print(flush=True); {WAITS}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=env,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert set(marked_processes(f"test-{os.getpid()}:")) == {process.pid}
        assert marked_processes(f"{os.getpid()}:") == {}
        process.communicate()
