"""`harness bisect` as a user runs it, on releases of a server that differ by their version."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_line import call

from tests.processes import ROOT, Said

pytestmark = [pytest.mark.slow, pytest.mark.socket]

# Release 4 does not start; 5 and 6 complete every turn twice.
SERVERS = {"4": "does_not_start", "5": "double_completed", "6": "double_completed"}
RELEASES = f"""
import os, sys
name = {SERVERS}.get(sys.argv[1])
file = f"{ROOT}/fixtures/servers/" + (f"broken/{{name}}.py" if name else "minimal.py")
os.execv(sys.executable, [sys.executable, file])
"""
FINDING = "turn.completed-once@turns/plain-turn"


def bisect(folder: Path, versions: str, *words: str, finding: str = FINDING) -> Said:
    (folder / "releases.py").write_text(RELEASES)
    command = f"{sys.executable} {folder}/rele*.py {{version}}"
    return call(
        "harness", "bisect", "--finding", finding, "--versions", versions,
        "--server-cmd", command, "--dir", str(folder / "kept"), "--no-confine", *words,
    )  # fmt: skip


def test_the_first_bad_release_is_found_and_stored_answers_are_used_again(tmp_path: Path) -> None:
    said = bisect(tmp_path, "1,2,3,4,5,6")
    assert said.status == 0, said
    lines = said.out.splitlines()
    assert lines[:3] == ["1: not shown", "6: shown", "3: not shown"]
    assert lines[3].startswith("4: skipped: the server `")
    assert f"{FINDING}: not shown in 3, shown in 5; it changed in one of 4, 5" in said.out
    # Nothing is played for what is known.
    again = bisect(tmp_path, "1,3,5,6", "--json", "-")
    plain = json.loads(again.out)
    assert again.err.splitlines() == [
        f"{name} (stored)" for name in ("1: not shown", "6: shown", "3: not shown", "5: shown")
    ]
    assert (plain["version"], plain["last_old"], plain["first_new"]) == (1, "3", "5")
    assert plain["answer"] == f"{FINDING}: 5 is the first release that shows it (3: not shown)"
    text = "\n".join(plain["text"])
    assert text.count('turn/completed"') >= 3, "both sides are shown, the bad one twice"
    assert "the rule is kept" in text
    assert plain["repeat"].startswith(f"harness bisect --finding {FINDING} --versions 3,5 ")


def test_ends_that_are_alike_are_an_answer_with_status_1(tmp_path: Path) -> None:
    said = bisect(tmp_path, "1,2")
    assert (said.status, said.err) == (1, "")
    assert "alike at both ends, 1 and 2: not shown" in said.out


@pytest.mark.parametrize(
    ("versions", "finding", "error"),
    [
        ("1", FINDING, "--versions: name at least two, the oldest first"),
        ("1..3", FINDING, "the range 1..3 needs the name of an npm package, or name each: a,b,c"),
        ("1,2", "turn.completed-onc", "unknown finding 'turn.completed-onc'"),
        ("1,2", "turn.completes@turns/plain", "unknown scenario 'turns/plain'"),
    ],
)
def test_a_mistake_is_one_line(versions: str, finding: str, error: str, tmp_path: Path) -> None:
    said = bisect(tmp_path, versions, finding=finding)
    assert (said.status, said.out) == (2, "")
    assert error in said.err
    assert len(said.err.splitlines()) == 1
