"""`harness matrix` as a user runs it: several servers, one that does not start, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import PLAIN, call

from tests.processes import BOUND, COMMANDS, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.socket]

SERVERS = f"{sys.executable} {ROOT}/fixtures/servers/"
MATRIX = f"""
scenarios = ["turns/plain-turn"]

[[target]]
name = "broken"
versions = ["does_not_start", "double_completed"]
server-cmd = "{SERVERS}broken/{{version}}.py"

[[target]]
name = "minimal"
server-cmd = "{SERVERS}minimal.py"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.toml").write_text(MATRIX)
    return tmp_path


def test_all_targets_are_judged_and_stored_compared_and_drawn(folder: Path) -> None:
    words = [
        "harness",
        "matrix",
        "m.toml",
        "--dir",
        "kept",
        "--no-confine",
        "--json",
        "m.json",
        "--badges",
        "b",
    ]
    said = call(*words, "--jobs", "3", cwd=folder)
    assert said.status == 1, "one of them cannot be judged"
    head = [line.split()[:3] for line in said.out.splitlines()[:3]]
    assert head == [
        ["1", "broken@does_not_start", "not"],
        ["2", "broken@double_completed", "RED,"],
        ["3", "minimal", "GREEN,"],
    ]
    assert "ended with exit status" in said.out.splitlines()[0]
    assert sorted(path.suffix for path in (folder / "b").iterdir()) == [".json"] * 3 + [".svg"] * 3
    # The one that does not start is tried again, what was judged is not.
    again = call(*words, "--all", cwd=folder)
    assert again.err.splitlines().count("minimal: GREEN (stored)") == 1
    assert "broken@double_completed: RED (stored)" in again.err
    assert "broken@does_not_start: not judged" in again.err
    compared = call(
        "harness", "compare", "m.json#minimal", "m.json#broken@double_completed", cwd=folder
    )
    assert compared.status == 1
    assert "turn.completed-once" in compared.out
    whole = call("harness", "compare", "m.json", "m.json", cwd=folder)
    assert "this is a matrix; name a target, m.json#NAME, of broken@does_not_start" in whole.err


def test_ctrl_c_keeps_what_is_judged_and_writes_it(folder: Path) -> None:
    targets = {"first": "minimal", "hangs": "broken/never_answers", "last": "minimal"}
    rows = [
        f'[[target]]\nname = "{name}"\nserver-cmd = "{SERVERS}{file}.py"\n'
        for name, file in targets.items()
    ]
    (folder / "m.toml").write_text("\n".join(['scenarios = ["turns/plain-turn"]', *rows]))
    words = ["matrix", "m.toml", "--dir", "kept", "--no-confine", "--json", "m.json"]
    process = subprocess.Popen(
        [COMMANDS / "harness", *words],
        cwd=folder,
        env={**os.environ, **PLAIN},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line == "hangs: judging\n":
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=BOUND)
    assert process.returncode == 128 + signal.SIGINT, err
    assert err.splitlines()[-1].startswith("interrupted: what was judged is kept")
    plain = json.loads((folder / "m.json").read_text())
    assert plain["interrupted"] == "SIGINT"
    assert [one["problem"] for one in plain["targets"]] == ["", "interrupted", "interrupted"]
    assert out.splitlines()[0].split()[:3] == ["1", "first", "GREEN,"]
