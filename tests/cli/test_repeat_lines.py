"""The `repeat` line of a failure is pasted into a shell and shows the failure again."""

import shutil
import sys
from pathlib import Path

import pytest
from command_line import ROOT, call, pasted

pytestmark = pytest.mark.slow

SCENARIO = """
title: it's "quoted" $HOME
model: [{reply: [{message: "Hello."}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: hello, as: u}
  - wait: {turn: u, status: completed}
expect: {items: [{agentMessage: {text: "Bye."}}]}
"""


def repeat_lines(told: str) -> list[str]:
    """Each once: where CI is set pytest says every story again in its summary."""
    found = [
        line.split(None, 1)[1]
        for line in told.splitlines()
        if line.split(None, 1)[:1] == ["repeat"]
    ]
    return list(dict.fromkeys(found))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose name needs quoting, with a server and a scenario that does too."""
    place = tmp_path / "it's here"
    place.mkdir()
    servers = ROOT / "fixtures/servers"
    shutil.copytree(servers / "broken", place / "my servers" / "broken")
    shutil.copy(servers / "minimal.py", place / "my servers")
    (place / "what's new.scenario.yaml").write_text(SCENARIO, "utf-8")
    return place


def test_the_repeat_line_of_a_failed_scenario_fails_again_when_pasted(folder: Path) -> None:
    command = f"'{sys.executable}' 'my servers/minimal.py'"
    first = call("harness", "run", "--server-cmd", command, "what's new.scenario.yaml", cwd=folder)
    assert first.status == 1, first
    [line] = repeat_lines(first.out)
    again = pasted(line, folder)
    assert again.status == 1, again
    assert "items[0]: no agentMessage" in again.out
    assert repeat_lines(again.out) == [line]


def test_the_repeat_line_of_a_set_up_finding_says_what_to_do_when_pasted(folder: Path) -> None:
    command = f"'{sys.executable}' 'my servers/broken/does_not_start.py'"
    first = call("harness", "run", "--server-cmd", command, "what's new.scenario.yaml", cwd=folder)
    assert first.status == 1, first
    [line] = repeat_lines(first.out)
    assert line.startswith("harness doctor ")
    again = pasted(line, folder)
    assert again.status == 1
    assert "the server starts: " in again.out
