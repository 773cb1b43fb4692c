"""A server whose words break files and act on terminals: its verdict is printed and written."""

import json
import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import PLAIN, ROOT

from tests.actions_runner import commands
from tests.processes import COMMANDS, Said, run, run_warm

pytestmark = [pytest.mark.slow, pytest.mark.socket]

SERVER = f"{sys.executable} {ROOT}/fixtures/servers/broken/odd_texts.py"
MINIMAL = f"{sys.executable} {ROOT}/fixtures/servers/minimal.py"


def harness(folder: Path, *words: str, **more: str) -> Said:
    return run_warm("harness", *words, cwd=folder, env={**os.environ, **PLAIN, **more})


def acts(text: str) -> set[str]:
    """Return the characters that a terminal or an editor would obey."""
    return {char for char in text if not char.isprintable() and char not in "\n\t"}


@pytest.mark.parametrize(
    "workers", [pytest.param("0", marks=pytest.mark.runs), "2"], ids=["alone", "workers"]
)
def test_every_report_of_a_run_is_whole(tmp_path: Path, workers: str) -> None:
    words = ["--json", "r.json", "--markdown", "r.md", "--junit", "r.xml", "--snapshots", "kept"]
    words += ["-n", workers, "-v", "turns/plain-turn", "turns/two-turns"]
    job = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    said = harness(tmp_path, "run", "--server-cmd", SERVER, *words, **job)
    assert said.status == 1, said.err
    assert "verdict: RED because of" in said.out
    assert "Traceback" not in said.out + said.err
    assert acts(said.out) == set()
    assert {"error"} == {one.name for one in commands(said.out.splitlines())}
    assert json.loads((tmp_path / "r.json").read_text("utf-8"))["red"] is True
    ElementTree.parse(tmp_path / "r.xml")
    for name in ("r.json", "r.md", "summary.md"):
        assert acts((tmp_path / name).read_text("utf-8")) == set()
    assert len((tmp_path / "r.json").read_bytes()) < 2_000_000, "ten megabytes are not repeated"


def test_other_commands_show_what_it_said(tmp_path: Path) -> None:
    for server in (MINIMAL, SERVER):
        words = ["turns/plain-turn", "--snapshots", "kept"]
        harness(tmp_path, "run", "--server-cmd", server, *words)
    trace = ".harness/traces/spec/turns/plain-turn.jsonl"
    snapshot = ["snapshots", "review", "kept"]
    plays = [["show", trace], ["check", trace, "--side", "both"], ["compare", "previous", "last"]]
    plays += [["ledger"], ["scenario", "from-trace", trace, "-o", "x.scenario.yaml"]]
    plays += [["compare", "previous", "last", "--json", "-"], snapshot]
    for words in plays:
        said = harness(tmp_path, *words)
        assert said.out, (words, said.err)
        assert "Traceback" not in said.err, words
        assert acts(said.out + said.err) == set(), words


def test_conversation_by_hand_goes_on(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    turn = 'turn/start {"input": [{"type": "text", "text": "hello"}]}'
    lines.write_text(f"thread/start\n{turn}\n:wait\n:show\n", "utf-8")
    env = {**os.environ, **PLAIN}
    command = f'"{COMMANDS}/harness" connect --server-cmd "{SERVER}" < lines'
    said = run(["/bin/sh", "-c", command], cwd=tmp_path, env=env)
    assert "findings: MUST" in said.out, said.out[-2000:] + said.err
    assert "Traceback" not in said.err
    assert acts(said.out + said.err) == set()


@pytest.mark.parametrize("option", ["--json", "--markdown", "--junit"])
def test_report_that_cannot_be_written_does_not_cost_the_verdict(
    tmp_path: Path, option: str
) -> None:
    words = ["run", "--server-cmd", MINIMAL, "turns/plain-turn", option, "/dev/full"]
    said = harness(tmp_path, *words)
    assert "verdict: GREEN" in said.out
    assert f"ERROR: {option} /dev/full was not written: No space left on device" in said.out
    assert "Traceback" not in said.out + said.err
    assert said.status == 2
