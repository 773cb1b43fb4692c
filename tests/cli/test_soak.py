"""`harness soak` as a user starts it: planted leaks, and a server over a WebSocket."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.socket]


def soak(folder: Path, server: str, *words: str) -> tuple[int, dict[str, object]]:
    command = [sys.executable, "-m", "harness", "soak", "--dir", str(folder / "dir")]
    report = folder / "soak.json"
    options = ["--server-cmd", f"{sys.executable} {server}", "--json", str(report), *words]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True)
    assert report.exists(), done.stderr
    return done.returncode, json.loads(report.read_text())


@pytest.mark.parametrize("leak", ["memory", "descriptors"])
def test_planted_leak_and_nothing_else_is_found(tmp_path: Path, leak: str) -> None:
    server = f"{ROOT}/fixtures/servers/broken/grows.py {leak}"
    status, report = soak(tmp_path, server, "--stdio", "--time", "5", "--mix", "turn")
    assert report["grown"] == [leak], report
    assert (status, report["errors"], report["broken"]) == (0, {}, [])


def test_users_of_one_server_reconnect_and_are_judged(tmp_path: Path) -> None:
    words = ("--target", "reference", "--time", "2")
    status, report = soak(tmp_path, "-m reference_server app-server", *words)
    assert (report["errors"], report["broken"]) == ({}, [])
    assert report["judged"]
    # Two seconds prove little; growth fails a server whose profile forbids it, as no reading does.
    assert report["must_be_flat"]
    assert (status == 0) == bool(report["trends"] and not report["grown"])
