"""Workers and lanes make no difference, and a run that is broken off is never green."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from .judging import SERVERS, Ran, bundled, command, fork_pytest, run_pytest, start_pytest

pytestmark = [pytest.mark.socket, pytest.mark.slow]

FEW = ("failures/bad-request", "turns/plain-turn", "turns/reasoning", "turns/two-turns")
# Ends the process that plays it, once; then hangs on, whatever happens to its input.
KILLER = f"""
import os, pathlib, signal, sys
sys.path.insert(0, {str(SERVERS)!r})
from minimal import Server
class Killer(Server):
    def turn_start(self, params, reply):
        if "kill the worker" in str(params) and not pathlib.Path("killed").exists():
            pathlib.Path("killed").touch()
            os.kill(os.getppid(), signal.SIGKILL)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                signal.pause()
        super().turn_start(params, reply)
Killer().serve()
"""
# Says in the FIFO that a turn was started, and then nothing more, to nobody.
HANGER = f"""
import signal, sys
sys.path.insert(0, {str(SERVERS)!r})
from minimal import Server
class Hanger(Server):
    def turn_start(self, params, reply):
        if "say hello" in str(params):
            return super().turn_start(params, reply)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open("fifo", "w").close()
        while True:
            signal.pause()
Hanger().serve()
"""
SCENARIO = """
title: {title}
model: [{{reply: [{{message: "hello"}}]}}]
client:
  - start_thread: {{as: t}}
  - start_turn: {{thread: t, text: "{title}", as: u}}
  - wait: {{turn: u, status: completed}}
"""


@pytest.mark.parametrize(
    ("server", "ways"),
    [
        ("broken/double_completed", ("--lanes=1", "-n3", "--lanes=4", "-n2 --lanes=2")),
        pytest.param(
            "broken/no_model_call", ("--lanes=1", "-n2", "--lanes=4"), marks=pytest.mark.runs
        ),
    ],
)
def test_any_number_of_workers_and_lanes_gives_the_same_verdicts(
    server: str, ways: tuple[str, ...], place: Path, mark: str
) -> None:
    paths = [str(one.path) for one in bundled(*FEW)]
    options = ["--server-cmd", command(server), *paths]
    runs = [run_pytest(*options, *way.split(), folder=place, mark=mark) for way in ways]
    assert {run.status for run in runs} == {1}
    assert len(runs[0].verdicts) > 100
    for run in runs[1:]:
        assert run.verdicts == runs[0].verdicts
        assert _issues(run) == _issues(runs[0])
        assert _tally(run) == _tally(runs[0])


def test_a_scenario_that_a_worker_played_has_one_line(place: Path, mark: str) -> None:
    paths = [str(one.path) for one in bundled(*FEW)]
    options = ["--server-cmd", command("minimal"), *paths, "-vv", "-n2"]
    progress, _, _ = run_pytest(*options, folder=place, mark=mark).text.partition("conformance of")
    lines = progress.splitlines()
    for name in FEW:
        told = [line for line in lines if line.rstrip().endswith(f" {name}")]
        assert [line[:3] for line in told] == ["[gw"], told


def test_worker_that_dies_makes_the_run_red_and_the_rest_is_judged(place: Path, mark: str) -> None:
    folder = place / "mine"
    folder.mkdir()
    for name in ("a", "b", "c"):
        title = "kill the worker" if name == "b" else f"say {name}"
        (folder / f"{name}.scenario.yaml").write_text(SCENARIO.format(title=title))
    script = place / "killer.py"
    script.write_text(KILLER)
    # Started: a run knows the worker that died by being its parent.
    running = start_pytest("--server-cmd", command(script), "-n2", "mine", folder=place, mark=mark)
    ran = running.end()
    assert ran.status == 1
    assert ran.report["red"] is True
    assert "harness.worker-died" in [issue["id"] for issue in ran.report["issues"]]
    assert "verdict: RED" in ran.text
    verdicts = {one["id"]: one["verdict"] for one in ran.report["scenarios"]}
    assert {verdicts["mine/a"], verdicts["mine/c"]} == {"PASS"}


@pytest.mark.parametrize(
    "workers", ["-n0", "--lanes=3", pytest.param("-n2", marks=pytest.mark.runs)]
)
def test_interrupted_run_leaves_nothing_behind(workers: str, place: Path, mark: str) -> None:
    # On lanes it is played once another has passed.
    names = ["before", "one"] if "lanes" in workers else ["one"]
    for name in names:
        title = "say hello" if name == "before" else "wait for it"
        (place / f"{name}.scenario.yaml").write_text(SCENARIO.format(title=title))
    script, fifo = place / "hanger.py", place / "fifo"
    script.write_text(HANGER)
    os.mkfifo(fifo)
    files = [f"{name}.scenario.yaml" for name in names]
    options = ["--server-cmd", command(script), *files, workers]
    options += ["--timeout-scale", "0.5"]
    start = start_pytest if workers == "-n2" else fork_pytest
    running = start(*options, folder=place, mark=mark)
    fifo.open().close()  # Until the server has been asked for a turn.
    os.kill(running.pid, signal.SIGINT)
    ran = running.end()
    assert ran.status == 130
    assert "Interrupted: the run was interrupted (SIGINT)" in ran.text
    assert "verdict: GREEN" not in ran.text


def _issues(ran: Ran) -> list[tuple[str, str]]:
    """Every issue, without the port of the model."""
    return [
        (one["id"], re.sub(r":\d+/v1", ":PORT/v1", one["message"])) for one in ran.report["issues"]
    ]


def _tally(ran: Ran) -> dict[str, int]:
    """The counts of pytest's own last line: `2 failed, 50 passed`."""
    last = [line for line in ran.text.splitlines() if re.search(r" in [\d.]+s", line)][-1]
    counts = re.findall(r"(\d+) ([a-z]+)", last.split(" in ")[0])
    return {what: int(count) for count, what in counts}
