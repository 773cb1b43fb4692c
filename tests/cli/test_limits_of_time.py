"""Limits of time in every form of the report: kept, not kept, and promised.

No machine keeps `0.0001ms`, and each keeps `600s`, so nothing here depends on its speed.
"""

import json
import shlex
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from command_line import call

from tests.processes import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.socket]

SERVER = shlex.join([sys.executable, str(ROOT / "fixtures/servers/minimal.py")])
SCENARIO = """
title: A turn that has to be quick
model: [{reply: [{message: "Hello."}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: "hello", as: u}
  - wait: {turn: u, within: WITHIN}
"""
PROFILE = """
name = "mine"
within = "LEVEL"
[[times]]
from = "turn/start"
to = "turn/completed"
within = "WITHIN"
level = "LEVEL"
"""
NAME = "turn/start -> turn/completed"


@pytest.mark.parametrize(
    ("within", "level", "status"),
    [("0.0001ms", "SHOULD", 0), ("0.0001ms", "MUST", 1), ("600s", "MUST", 0)],
)
def test_limits_are_told_in_every_form(
    within: str, level: str, status: int, tmp_path: Path
) -> None:
    def write(name: str, text: str) -> None:
        text = text.replace("WITHIN", within).replace("LEVEL", level)
        (tmp_path / name).write_text(text, "utf-8")

    write("pyproject.toml", "")
    write("quick.scenario.yaml", SCENARIO)
    write("mine.toml", PROFILE)
    files = {form: f"report.{form}" for form in ("json", "markdown", "html", "junit")}
    options = [word for form, file in files.items() for word in (f"--{form}", file)]
    plays = ("quick.scenario.yaml", "turns/plain-turn")
    server = ("--target", "mine.toml", "--server-cmd", SERVER)
    said = call("harness", "run", *plays, *server, *options, cwd=tmp_path)
    assert said.status == status, said.out
    over = within != "600s"
    report: dict[str, Any] = json.loads((tmp_path / files["json"]).read_text("utf-8"))
    of_step, of_run = report["times"]
    assert (of_step["step"], of_step["samples"], of_step["level"]) == ("quick:7", 1, level)
    assert (of_run["name"], of_run["samples"], of_run["level"]) == (NAME, 2, level)
    assert [one["took"] > one["within"] for one in report["times"]] == [over, over]
    counts = level == "MUST"
    issues = ["times.slow"] if counts else ["scenario.slow", "times.slow"]
    assert [one["id"] for one in report["issues"]] == (issues if over else [])
    verdicts = {one["id"]: one["verdict"] for one in report["scenarios"]}
    assert verdicts["quick"] == ("FAIL" if over and counts else "PASS")
    junit = ElementTree.parse(tmp_path / files["junit"]).getroot()
    values = {one.get("name"): one.get("value") or "" for one in junit.iter("property")}
    texts = [
        said.out,
        (tmp_path / files["markdown"]).read_text("utf-8"),
        (tmp_path / files["html"]).read_text("utf-8"),
        "\n".join(values.values()),
    ]
    for text in texts:
        assert ("samples: 2, p50 " in text, f"OVER, {level}: p95 " in text) == (True, over)
    assert {"time quick:7", f"time {NAME}"} <= {*values}
