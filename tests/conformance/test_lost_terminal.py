"""A run whose terminal is closed writes its report so far, and leaves no process behind."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import shlex
import subprocess
import sys
import termios
from pathlib import Path

import psutil
import pytest

from tests.processes import BOUND

from .judging import SERVERS

pytestmark = [pytest.mark.socket, pytest.mark.slow]

SERVER = f"""
import signal, sys
sys.path.insert(0, {str(SERVERS)!r})
from minimal import Server
class Hanger(Server):
    def turn_start(self, params, reply):
        open("{{fifo}}", "w").close()
        while True:
            signal.pause()
Hanger().serve()
"""
# Its helper is in a session of its own, and no child of the server.
WRAPPER = """#!/bin/sh
(setsid sh -c 'echo $$ > {pid}; exec sleep 600' > /dev/null 2>&1 < /dev/null &)
exec {python} {server}
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_whose_terminal_is_closed_reports_and_ends_all(workers: str, place: Path) -> None:
    fifo, wrapper, helper = place / "fifo", place / "wrapper.sh", place / "helper.pid"
    server, report = place / "hanger.py", place / "report.json"
    os.mkfifo(fifo)
    server.write_text(SERVER.format(fifo=fifo))
    words = {"pid": helper, "python": shlex.quote(sys.executable), "server": server}
    wrapper.write_text(WRAPPER.format(**words))
    wrapper.chmod(0o755)
    options = ["-n", workers, "--json", str(report), "--timeout-scale", "5"]
    command = ["run", "--server-cmd", str(wrapper), "turns/plain-turn", *options]
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", *command],
        cwd=place,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    fifo.open().close()
    os.close(master)
    assert process.wait(BOUND) == 129
    assert json.loads(report.read_text("utf-8"))["interrupted"] == "SIGHUP"
    with contextlib.suppress(psutil.NoSuchProcess):
        left = psutil.Process(int(helper.read_text()))
        assert left.status() == psutil.STATUS_ZOMBIE
