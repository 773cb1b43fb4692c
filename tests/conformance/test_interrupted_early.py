"""A run that is interrupted before anything is played: no scenario is to blame for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sampling import one_in

from .judging import command
from .running import own_pytest, scenario

pytestmark = [pytest.mark.socket, pytest.mark.slow]

MINIMAL = command("minimal")
# The signal comes while the scenario b is read.
WHILE_READING = """
import os, signal
def pytest_configure(config):
    # A shell that starts something in the background has it ignore Ctrl-C.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    from harness.cli.suite import items
    load = items.load
    def interrupted(path, **more):
        loaded = load(path, **more)
        if path.name.startswith("b."):
            os.kill(os.getpid(), signal.{name})
        return loaded
    items.load = interrupted
"""


MODULES = ("typer", "pytest", "_pytest.main", "harness.cli.suite.hooks")


@pytest.mark.parametrize(
    ("name", "status"),
    [("SIGINT", 130), pytest.param("SIGTERM", 143, marks=pytest.mark.runs)],
)
def test_signal_during_collection_is_no_error_of_a_scenario(
    name: str, status: int, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in ("a", "b", "c"):
        scenario(place / "mine" / f"{one}.scenario.yaml")
    (place / "pytest.ini").write_text("[pytest]\n")
    (place / "reading.py").write_text(WHILE_READING.format(name=name))
    monkeypatch.setenv("PYTHONPATH", str(place))
    words = ["-p", "reading", "mine", "--harness-json", "report.json"]
    told = own_pytest(*words, server=MINIMAL, folder=place)
    assert told.status == status, told.text
    assert "ERROR" not in told.text
    told.line("interrupted: ending the server; again to kill")
    assert "no scenario is left" not in told.text
    assert "verdict: INTERRUPTED" in told.text
    assert json.loads((place / "report.json").read_text())["interrupted"] == name
    again = own_pytest("--lf", "mine", server=MINIMAL, folder=place)
    assert (again.status, again.score) == (0, "3 PASS"), again.text


# The signal comes when a module is about to be imported.
AT_IMPORT = """
import os, signal, sys
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
class AtImport:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, AtImport())
"""


@pytest.mark.parametrize(
    "module",
    one_in(4, ["typer", "pytest", "_pytest.main", "harness.cli.suite.hooks"], pytest.mark.runs),
)
def test_ctrl_c_while_the_command_starts_is_quiet(
    module: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "sitecustomize.py").write_text(AT_IMPORT.format(module=module))
    monkeypatch.setenv("PYTHONPATH", str(place))
    line = [sys.executable, "-m", "harness", "run", "--server-cmd", MINIMAL, "turns/plain-turn"]
    done = subprocess.run(line, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
