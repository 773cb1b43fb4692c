"""Who a server's descendants are, whatever way they are looked up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from harness.target import family
from harness.target.family import descendants

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


def test_process_without_children_is_known_without_a_look_at_all_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with started(WAITS) as process:
        assert descendants(process.pid) == {}
        if Path(f"/proc/{process.pid}/task/{process.pid}/children").exists():
            monkeypatch.setattr(psutil, "Process", None)
            assert descendants(process.pid) == {}
        process.communicate()


@pytest.mark.parametrize("listed", [True, False])
def test_children_of_children_are_found_with_and_without_the_systems_lists(
    *, listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not listed:
        monkeypatch.setattr(family, "_childless", lambda _pid: False)
    with started(PARENT) as process:
        assert process.stdout is not None
        born = {int(process.stdout.readline()), int(process.stdout.readline())}
        assert set(descendants(process.pid)) == born
        assert set(descendants(os.getpid())) >= {process.pid, *born}
        process.communicate()


def test_process_that_is_gone_has_none() -> None:
    process = started(WAITS)
    process.communicate()
    assert descendants(process.pid) == {}
