"""Completion in a shell: the names that a user would type."""

import os

import pytest
from command_line import PLAIN, call

from tests.processes import ROOT, run_warm

pytestmark = pytest.mark.slow


def completed(line: str) -> list[str]:
    words = line.split(" ")
    variables = {
        "_HARNESS_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    return run_warm("harness", cwd=ROOT, env={**os.environ, **PLAIN, **variables}).out.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("harness ru", {"run"}),
        ("harness run --server-c", {"--server-cmd"}),
        ("harness run --target ref", {"reference"}),
        ("harness fuzz --target cod", {"codex"}),
        ("harness run turn", {"turns/"}),
        ("harness run turns/plain-t", {"turns/plain-turn"}),
        ("harness run --rule turn.completed-o", {"turn.completed-once"}),
        ("harness explain thread/st", {"thread/start", "thread/started", "thread/status/changed"}),
        ("harness docs exec", {"exec", "exec-judging"}),
    ],
)
def test_names_are_completed(line: str, expected: set[str]) -> None:
    assert set(completed(line)) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_printed(shell: str) -> None:
    said = call("harness", "--show-completion", shell)
    assert said.status == 0
    assert "_HARNESS_COMPLETE" in said.out
