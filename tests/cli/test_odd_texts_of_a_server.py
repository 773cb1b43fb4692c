"""A server whose texts could break files or control terminals still gets its verdict."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen
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


def test_doctor_says_what_is_wrong_in_lines_of_its_own(tmp_path: Path) -> None:
    said = harness(tmp_path, "doctor", "--server-cmd", SERVER, "--json", "d.json")
    assert "FAIL a plain turn ends as failed: half a pair" in said.out, said.err
    assert "Traceback" not in said.err
    assert acts(said.out + said.err) == set()
    begins = {line[:4].strip() for line in said.out.splitlines()}
    assert begins <= {"ok", "--", "FAIL", ""}, "a CI runner obeys a line that begins with ::"
    assert acts((tmp_path / "d.json").read_text("utf-8")) == set()


ASKED = "half \ud83d NUL \0 ESC \x1b]0;P\x07 C1 \x9b bidi \u202e no character \ufffe\n::error::P"


def test_model_shows_what_it_was_asked(tmp_path: Path) -> None:
    script = (
        'title: one\nmodel:\n  - expect: {input_contains: ["zz"]}\n    reply: [{message: hi}]\n'
    )
    (tmp_path / "one.yaml").write_text(script, "utf-8")
    words = ["model", "one.yaml", "--once", "--json", "m.json"]
    process = subprocess.Popen(
        [COMMANDS / "harness", *words],
        cwd=tmp_path,
        env={**os.environ, **PLAIN, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    with process:
        assert process.stdout is not None
        first = process.stdout.readline()
        content = [{"type": "input_text", "text": ASKED}]
        message = {"type": "message", "role": "user", "content": content}
        body: dict[str, Any] = {"model": ASKED, "stream": True, "input": [message]}
        address = first.split(" is at ")[1].strip()
        urlopen(f"{address}/responses", json.dumps(body).encode(), timeout=30).read()
        out = first + process.stdout.read()
    assert process.returncode == 1
    assert "verdict: RED" in out
    assert "half \\ud83d NUL" in out
    assert acts(out) == set()
    assert not any(line.startswith("::") for line in out.splitlines())
    assert acts((tmp_path / "m.json").read_text("utf-8")) == set()


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


@pytest.mark.parametrize("option", ["--json", "--markdown", "--junit", "--html"])
def test_report_that_cannot_be_written_does_not_cost_the_verdict(
    tmp_path: Path, option: str
) -> None:
    words = ["run", "--server-cmd", MINIMAL, "turns/plain-turn", option, "/dev/full"]
    said = harness(tmp_path, *words)
    assert "verdict: GREEN" in said.out
    assert f"ERROR: {option} /dev/full was not written: No space left on device" in said.out
    assert "Traceback" not in said.out + said.err
    assert said.status == 2
