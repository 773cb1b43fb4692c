"""An interrupted run reports its verdicts so far, leaves nothing behind, and has its own status.

The server says in a FIFO that a scenario waits for it, so that the signal comes just then.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.processes import Said, run_warm

from .judging import SERVERS, Running, command, fork_pytest, start_pytest

pytestmark = [pytest.mark.socket, pytest.mark.slow]

# Plays on, until a turn's text is the one at which it says so in the FIFO and hangs for good.
HANGER = f"""
import signal, sys
sys.path.insert(0, {str(SERVERS)!r})
from minimal import Server
class Hanger(Server):
    def turn_start(self, params, reply):
        if "{{text}}" not in str(params):
            return super().turn_start(params, reply)
        open("fifo", "w").close()
        while True:
            signal.pause()
    def {{hook}}
Hanger().serve()
"""
AT_START = """initialize(self, params, reply):
        open("fifo", "w").close()
        signal.pause()"""
NOTHING = "nothing(self): pass"
SCENARIO = """
title: {title}
model: [{{reply: [{{message: "hello"}}]}}]
client:
  - start_thread: {{as: t}}
  - start_turn: {{thread: t, text: "{title}", as: u}}
  - wait: {{turn: u, status: completed}}
"""
BOTH = pytest.mark.parametrize(
    ("number", "status"),
    [
        pytest.param(signal.SIGINT, 130, id="INT"),
        pytest.param(signal.SIGTERM, 143, id="TERM", marks=pytest.mark.runs),
        pytest.param(signal.SIGHUP, 129, id="HUP", marks=pytest.mark.runs),
    ],
)
WORKERS = pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.runs)])


def interrupted(
    place: Path,
    mark: str,
    *options: str,
    hook: str = NOTHING,
    start: Callable[..., Running] = fork_pytest,
) -> Running:
    """A run of three scenarios whose server hangs in the second, or at once; it hangs now."""
    folder = place / "mine"
    folder.mkdir()
    for name in ("a", "b", "c"):
        text = SCENARIO.format(title=f"say {name}")
        (folder / f"{name}.scenario.yaml").write_text(text, encoding="utf-8")
    script, fifo = place / "hanger.py", place / "fifo"
    script.write_text(HANGER.format(text="say b", hook=hook), encoding="utf-8")
    os.mkfifo(fifo)
    line = ["--server-cmd", command(script), "mine", "--timeout-scale", "2", *options]
    running = start(*line, folder=place, mark=mark)
    fifo.open().close()
    return running


@WORKERS
@BOTH
def test_an_interrupted_run_reports_what_it_judged(
    number: signal.Signals, status: int, workers: str, place: Path, mark: str
) -> None:
    running = interrupted(place, mark, workers, "--junit-xml", "report.xml")
    os.kill(running.pid, number)
    ran = running.end()
    assert ran.status == status
    assert ran.report["interrupted"] == number.name
    scenarios = {one["id"]: one for one in ran.report["scenarios"]}
    assert sorted(scenarios) == ["mine/a", "mine/b", "mine/c"]
    assert scenarios["mine/b"]["verdict"] == "NOT_EXERCISED"
    assert scenarios["mine/b"]["reason"] == f"the run was interrupted ({number.name})"
    assert scenarios["mine/b"]["title"] == "say b"
    if workers == "-n0":
        assert scenarios["mine/a"]["verdict"] == "PASS"
        assert scenarios["mine/c"]["verdict"] == "NOT_EXERCISED"
        assert ran.verdicts["turn.completes"] == "PASS"
    assert "verdict: INTERRUPTED (GREEN so far)" in ran.text
    assert "worker-died" not in ran.text
    assert ran.text.count("interrupted: ending the server; again to kill") == 1
    cases = ElementTree.parse(place / "report.xml").getroot().iter("testcase")
    assert "turn.completes" in " ".join(str(case.get("name")) for case in cases)


@WORKERS
def test_ctrl_c_of_a_terminal_reaches_all_and_is_one(workers: str, place: Path, mark: str) -> None:
    # Started: the workers are its children.
    running = interrupted(place, mark, workers, start=start_pytest)
    family = [running.pid, *_children(running.pid)]
    for pid in family:
        os.kill(pid, signal.SIGINT)
    ran = running.end()
    assert ran.status == 130
    assert ran.report["interrupted"] == "SIGINT"
    assert "crashed" not in ran.text


@WORKERS
def test_interrupt_while_the_server_starts_leaves_nothing(
    workers: str, place: Path, mark: str
) -> None:
    running = interrupted(place, mark, workers, hook=AT_START)
    os.kill(running.pid, signal.SIGINT)
    ran = running.end()
    assert ran.status == 130
    assert {one["verdict"] for one in ran.report["scenarios"]} == {"NOT_EXERCISED"}


def test_no_entry_of_a_baseline_is_stale_in_an_interrupted_run(place: Path, mark: str) -> None:
    known = place / "known.toml"
    known.write_text(
        '[[deviations]]\nrule = "turn.completes"\nscenario = "mine/a"\nreason = "so"\n'
    )
    running = interrupted(place, mark, "--baseline", str(known))
    os.kill(running.pid, signal.SIGINT)
    ran = running.end()
    assert ran.status == 130
    assert ran.report["issues"] == []
    assert ran.report["unchecked"] == ["turn.completes (scenario mine/a)"]


# The second signal comes while the server, which ignores TERM, is being ended.
TWICE = """
import os, signal, threading, time
import pytest
class Twice:
    def pytest_configure(self, config):
        from harness.client.target import process
        stop = process.ServerProcess.stop
        async def slow(self, grace):
            open("closing", "w").close()
            return await stop(self, 1000)
        process.ServerProcess.stop = slow
twice = Twice()
def pytest_configure(config):
    twice.pytest_configure(config)
"""


@WORKERS
def test_second_signal_ends_at_once_and_leaves_no_process(
    workers: str, place: Path, mark: str
) -> None:
    (place / "twice.py").write_text(TWICE)
    os.mkfifo(place / "closing")
    running = interrupted(place, mark, workers, "-p", "twice", start=start_pytest)
    os.kill(running.pid, signal.SIGINT)
    (place / "closing").open().close()  # Until the server is being ended, which takes for ever.
    with subprocess.Popen([sys.executable, "-c", AGAIN.format(pid=running.pid)]):
        ran = running.end()
    assert ran.status == 130
    assert ran.report == {}


# More than half a second later: what comes at once is the same signal.
AGAIN = "import os, signal, threading; threading.Event().wait(0.7); os.kill({pid}, signal.SIGINT)"


def _children(pid: int) -> list[int]:
    import psutil

    return [one.pid for one in psutil.Process(pid).children() if "-c" in one.cmdline()]


@pytest.mark.usefixtures("place", "mark")
class TestStandardOutput:
    def test_json_to_standard_output_is_alone_there(self) -> None:
        ran = _harness("--json", "-")
        report = json.loads(ran.out)
        assert report["red"] is False
        assert report["interrupted"] == ""
        assert "verdict: GREEN" in ran.err
        assert ran.status == 0

    def test_junit_to_standard_output_is_alone_there(self) -> None:
        ran = _harness("--junit", "-")
        assert ElementTree.fromstring(ran.out).tag == "testsuites"
        assert "verdict: GREEN" in ran.err

    def test_both_to_standard_output_are_refused(self) -> None:
        ran = _harness("--json", "-", "--junit", "-")
        assert ran.status == 2
        assert "one of them only" in ran.err


def _harness(*options: str) -> Said:
    words = ["run", "--server-cmd", command("minimal"), *options, "turns/plain-turn"]
    return run_warm("harness", *words, cwd=Path.cwd())
