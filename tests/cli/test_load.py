"""`harness load` as a user starts it, each in a process of its own: Locust changes a process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ROOT

AGENT = f"{sys.executable} -m reference_server app-server"
FLOOD = f"{sys.executable} {ROOT}/fixtures/servers/broken/double_completed.py"
PACE = ("--pace", "0.01,3,0.01", "--think", "0..0.1", "--judge", "100%", "--mix", "turn,list,fork")


def run_load(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness", "load", "--dir", str(folder), *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.socket
@pytest.mark.parametrize("way", [[], ["--stdio"]], ids=["websocket", "pipes"])
def test_sound_server_is_correct_under_load(tmp_path: Path, way: list[str]) -> None:
    target = ("--target", "reference", "--server-cmd", AGENT)
    load = ("--ramp", "2,3", "--time", "1", "--json", str(tmp_path / "load.json"))
    done = run_load(tmp_path / "dir", *target, *load, *PACE, *way)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "load.json").read_text())
    assert report["conclusion"] == "correct under load up to 3 users"
    assert [step["judged"] for step in report["steps"]] == [2, 3]
    names = {row["name"] for step in report["steps"] for row in step["rows"]}
    assert names >= {"turn", "list", "fork", "turn: first delta", "turn: server's share"}


@pytest.mark.slow
@pytest.mark.socket
def test_broken_rule_under_load_is_a_finding_with_its_recording(tmp_path: Path) -> None:
    words = ("--server-cmd", FLOOD, "--stdio", "--users", "1", "--time", "1", *PACE)
    done = run_load(tmp_path, *words, "--mix", "turn")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "not correct under load" in done.stdout
    assert "turn.completed-once" in done.stdout, done.stdout
    assert list(tmp_path.glob("load/1/user-1-*.jsonl"))


def test_too_many_processes_are_refused(tmp_path: Path) -> None:
    done = run_load(tmp_path, "--server-cmd", FLOOD, "--users", "65", "--time", "1")
    assert done.returncode == 2
    assert "at most 64" in done.stderr
