"""`harness fuzz`, `replay`, `doctor`, `mutate` that are interrupted say so, and leave nothing.

The server says in a FIFO that it hangs, so that the signal comes just then.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
from pathlib import Path

import psutil
import pytest

from tests.processes import COMMANDS, start_fork

from .judging import SERVERS

pytestmark = [pytest.mark.socket, pytest.mark.slow]

# Answers everything, until {method} comes: then it says so in the FIFO, and hangs for good.
HANGER = """
import signal, sys
sys.path.insert(0, {servers!r})
from minimal import Server
class Hanger(Server):
    def {method}(self, params, reply):
        open({fifo!r}, "w").close()
        while True:
            signal.pause()
Hanger().serve()
"""
SAID = "interrupted: ending the server; again to kill\n"
BOTH = pytest.mark.parametrize(
    ("number", "status"),
    [
        pytest.param(signal.SIGINT, 130, id="INT"),
        pytest.param(signal.SIGTERM, 143, id="TERM", marks=pytest.mark.runs),
    ],
)


def interrupted(
    place: Path, number: signal.Signals, method: str, *words: str
) -> tuple[int, str, str]:
    """Status, output and errors of a command that got a signal while its server hung."""
    script, fifo = place / "hanger.py", place / "fifo"
    text = HANGER.format(servers=str(SERVERS), method=method, fifo=str(fifo))
    script.write_text(text, encoding="utf-8")
    os.mkfifo(fifo)
    server = shlex.join([sys.executable, str(script)])
    options = ["--server-cmd", server, "--timeout-scale", "2"]
    command = [str(COMMANDS / "harness"), *words, *options]
    out, err = place / "out.txt", place / "err.txt"
    with open(os.devnull, "rb") as source, out.open("wb") as output, err.open("wb") as errors:
        streams = (source.fileno(), output.fileno(), errors.fileno())
        process = start_fork(command, cwd=place, env=dict(os.environ), streams=streams)
    killer = threading.Timer(60, process.kill)
    killer.start()
    try:
        fifo.open().close()
        os.kill(process.pid, number)
        status = process.wait()
    finally:
        killer.cancel()
    return status, out.read_text("utf-8"), err.read_text("utf-8")


@BOTH
def test_fuzz_that_is_interrupted_tells_what_it_found_so_far(
    number: signal.Signals, status: int, place: Path
) -> None:
    found = interrupted(place, number, "turn_start", "fuzz", "--method", "turn/start")
    assert (found[0], found[2]) == (status, SAID)
    lines = found[1].splitlines()
    assert lines[0].startswith("fuzz inputs of turn/start: seed 1, ")
    assert lines[1].startswith(f"interrupted ({number.name})")
    assert lines[2:] == ["verdict: INTERRUPTED (GREEN so far)"]


@BOTH
def test_replay_that_is_interrupted_says_that_it_knows_nothing(
    number: signal.Signals, status: int, place: Path
) -> None:
    case = place / "case.scenario.yaml"
    case.write_text(
        "title: A turn\n"
        "client:\n  - start_thread: {as: t}\n  - start_turn: {thread: t, text: hi, as: u}\n",
        encoding="utf-8",
    )
    found = interrupted(place, number, "turn_start", "replay", str(case))
    assert (found[0], found[2]) == (status, SAID)
    assert found[1] == f"interrupted ({number.name}): whether it is fixed is not known\n"


@BOTH
def test_doctor_that_is_interrupted_says_that_it_knows_nothing(
    number: signal.Signals, status: int, place: Path
) -> None:
    found = interrupted(place, number, "turn_start", "doctor")
    assert (found[0], found[2]) == (status, SAID)
    assert f"interrupted ({number.name}): whether it can be judged is not known" in found[1]
    assert "FAIL" not in found[1]


@pytest.mark.parametrize("command", ["fuzz", pytest.param("doctor", marks=pytest.mark.runs)])
def test_command_that_is_interrupted_while_the_server_starts_ends_as_one(
    command: str, place: Path
) -> None:
    status, out, err = interrupted(place, signal.SIGINT, "initialize", command)
    assert (status, err) == (130, SAID)
    assert "interrupted (SIGINT)" in out


@BOTH
def test_a_mutation_run_that_is_interrupted_tells_what_it_found_and_leaves_nothing(
    number: signal.Signals, status: int, place: Path
) -> None:
    words = ("mutate", "--fault", "turn-ends-twice,turn-never-ends", "-n", "1")
    found = interrupted(place, number, "turn_start", *words)
    assert (found[0], found[2]) == (status, SAID)
    lines = found[1].splitlines()
    assert lines[-2:] == [f"interrupted ({number.name}): 2 not tried", "mutation score: none"]
    script = str(place / "hanger.py")
    assert [one.pid for one in psutil.process_iter(["cmdline"]) if _runs(one, script)] == []


def _runs(process: psutil.Process, script: str) -> bool:
    return script in (process.info["cmdline"] or ())
