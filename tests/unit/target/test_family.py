"""Who a server's descendants are, whatever way they are looked up."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

from harness.target.family import Descendants

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


def test_strangers_are_asked_for_their_parents_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with started(WAITS) as process:
        above = [one.pid for one in psutil.Process(process.pid).parents()]
        monkeypatch.setattr(psutil, "pids", lambda: [process.pid, *above])
        family = Descendants(process.pid)
        assert family.living() == {}
        monkeypatch.setattr(psutil, "Process", None)
        assert family.living() == {}
        process.communicate()


@pytest.mark.parametrize("looked", [True, False])
def test_children_of_children_are_found_when_looked_for_before_they_were_born_and_when_not(
    *, looked: bool
) -> None:
    ours = Descendants(os.getpid())
    if looked:
        ours.living()
    with started(PARENT) as process:
        assert process.stdout is not None
        theirs = Descendants(process.pid)
        born = {int(process.stdout.readline())}
        if looked:
            assert set(theirs.living()) >= born
        born.add(int(process.stdout.readline()))
        for _ in range(2):
            assert set(theirs.living()) == born
            assert set(ours.living()) >= {process.pid, *born}
        process.communicate()
    assert ours.living().keys().isdisjoint(born)


def test_process_that_is_gone_has_none() -> None:
    process = started(WAITS)
    family = Descendants(process.pid)
    process.communicate()
    assert family.living() == {}
