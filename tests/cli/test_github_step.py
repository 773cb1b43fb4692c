"""`harness run` as a step of GitHub Actions: annotations, a summary, and a server that would like
to give the runner commands.
"""

import json
import os
import sys
from pathlib import Path

import pytest
from command_line import PLAIN, ROOT
from markdown_it import MarkdownIt

from tests.actions_runner import Command, commands
from tests.processes import Said, run_warm

pytestmark = [pytest.mark.slow, pytest.mark.socket]

HOSTILE = f"{sys.executable} {ROOT}/fixtures/servers/broken/speaks_to_the_runner.py"
SCENARIO = """\
title: 100%, a plain turn
model: [{reply: [{message: hello}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: hello, as: u}
  - wait: {turn: u}
expect:
  items: [userMessage, {agentMessage: {text: "another"}}]
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """The checkout of a job, with a scenario that a server does not meet."""
    (tmp_path / "my").mkdir()
    (tmp_path / "my" / "a,b.scenario.yaml").write_text(SCENARIO, "utf-8")
    return tmp_path


def step(workspace: Path, *words: str, **more: str) -> Said:
    """Run it as the runner does."""
    job = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(workspace)}
    job["GITHUB_STEP_SUMMARY"] = str(workspace / "summary.md")
    env = {**os.environ, **PLAIN, **job, **more}
    return run_warm("harness", "run", *words, cwd=workspace, env=env, together=True)


def told(said: Said) -> list[Command]:
    return commands(said.out.splitlines())


@pytest.mark.parametrize("workers", ["0", "2"])
def test_nothing_that_a_server_says_is_a_command(workspace: Path, workers: str) -> None:
    said = step(workspace, "--server-cmd", HOSTILE, "turns/plain-turn", "-v", "-n", workers)
    assert said.status == 1
    assert said.out.count("::error file=x") > 5, "the server's words are shown"
    titles = [one.properties.get("title") for one in told(said)]
    assert titles == ["frame.well-formed (MUST)", "turn.completed-once (MUST)"]
    assert {one.name for one in told(said)} == {"error"}
    # Where bundled scenarios lie the job has no files.
    assert all("file" not in one.properties for one in told(said))


def test_the_json_report_on_standard_output_gives_no_command_either(workspace: Path) -> None:
    said = step(workspace, "--server-cmd", HOSTILE, "turns/plain-turn", "--json", "r.json")
    assert said.status == 1
    text = (workspace / "r.json").read_text("utf-8")
    assert "error]PWNED" in text
    assert commands(text.splitlines()) == []
    assert any("##[error]PWNED" in str(one["proofs"]) for one in json.loads(text)["rules"])


def test_the_summary_shows_a_servers_words_as_code_alone(workspace: Path) -> None:
    (workspace / "summary.md").write_text("# of an earlier command\n", "utf-8")
    step(workspace, "--server-cmd", HOSTILE, "turns/plain-turn")
    page = (workspace / "summary.md").read_text("utf-8")
    assert page.startswith("# of an earlier command\n")
    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    inline = [one for token in tokens for one in token.children or ()]
    assert {one.type for one in inline} <= {"text", "code_inline", "html_inline", "text_special"}
    assert {one.content for one in inline if one.type == "html_inline"} == {"<code>", "</code>"}
    headings = [
        tokens[at + 1].content for at, one in enumerate(tokens) if "heading_open" in one.type
    ]
    assert headings == [
        "of an earlier command",
        "Conformance of `spec`: RED",
        "What makes the run fail",
    ]
    plain = [one.content for one in inline if one.type == "text"]
    assert "PWNED" in page
    assert page.count("## Conformance") == 1
    assert not [one for one in plain if one.startswith("PWNED")]


def test_a_finding_names_the_file_and_line_in_the_checkout(workspace: Path) -> None:
    server = f"{sys.executable} {ROOT}/fixtures/servers/minimal.py"
    said = step(workspace, "--server-cmd", server, "my")
    (one,) = told(said)
    assert said.status == 1
    assert one.properties["file"] == "my/a,b.scenario.yaml"
    assert one.properties["title"] == "scenario my/a,b"
    assert SCENARIO.splitlines()[int(one.properties["line"]) - 1].startswith("  items:")
    assert "another" in one.data


@pytest.mark.parametrize("value", ["", "false"])
def test_elsewhere_nothing_of_it_is_printed_or_written(workspace: Path, value: str) -> None:
    server = f"{sys.executable} {ROOT}/fixtures/servers/minimal.py"
    said = step(workspace, "--server-cmd", server, "my", GITHUB_ACTIONS=value)
    assert said.status == 1
    assert told(said) == []
    assert "stop-commands" not in said.out
    assert not (workspace / "summary.md").exists()


def test_a_summary_that_cannot_be_written_is_told_and_does_not_count(workspace: Path) -> None:
    server = f"{sys.executable} {ROOT}/fixtures/servers/minimal.py"
    words = ["--server-cmd", server, "turns/plain-turn"]
    said = step(workspace, *words, GITHUB_STEP_SUMMARY=str(workspace / "my"))
    assert said.status == 0, said.out
    assert "the summary of the job was not written: Is a directory" in said.out


def test_the_page_can_be_written_to_a_file_or_to_standard_output(workspace: Path) -> None:
    server = f"{sys.executable} {ROOT}/fixtures/servers/minimal.py"
    words = ["run", "--server-cmd", server, "turns/plain-turn", "--markdown"]
    env = {**os.environ, **PLAIN}
    said = run_warm("harness", *words, "-", cwd=workspace, env=env)
    assert said.out.startswith("## Conformance of `spec`: GREEN\n")
    assert "verdict: GREEN" in said.err
    run_warm("harness", *words, "page.md", cwd=workspace, env=env)
    lines = (workspace / "page.md").read_text("utf-8").splitlines()
    when = [number for number, line in enumerate(lines) if line.startswith("| when")]
    printed = said.out.splitlines()
    assert lines[: when[0]] == printed[: when[0]]


def test_only_one_report_goes_to_standard_output(workspace: Path) -> None:
    env = {**os.environ, **PLAIN}
    words = ["run", "--target", "reference", "--json", "-", "--markdown", "-"]
    said = run_warm("harness", *words, cwd=workspace, env=env)
    assert said.status == 2
    assert "--json - --markdown -: one of them only; name a file for the other" in said.err
