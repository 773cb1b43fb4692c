"""A run that is interrupted before anything is played: no scenario is to blame for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .judging import command
from .running import own_pytest, scenario

pytestmark = [pytest.mark.socket, pytest.mark.slow]

MINIMAL = command("minimal")
# The signal comes while the scenario b is read.
WHILE_READING = """
import os, signal
def pytest_configure(config):
    from harness.suite import items
    load = items.load
    def interrupted(path, **more):
        loaded = load(path, **more)
        if path.name.startswith("b."):
            os.kill(os.getpid(), signal.{name})
        return loaded
    items.load = interrupted
"""


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
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
    assert "no scenario is left" not in told.text
    assert "verdict: INTERRUPTED" in told.text
    assert json.loads((place / "report.json").read_text())["interrupted"] == name
    again = own_pytest("--lf", "mine", server=MINIMAL, folder=place)
    assert (again.status, again.score) == (0, "3 PASS"), again.text
