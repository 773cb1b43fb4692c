"""Help texts of the commands, as reviewed text (`--snapshot-update` to take a change)."""

import re

import pytest
from command_line import PrintedText, call
from syrupy.assertion import SnapshotAssertion

pytestmark = pytest.mark.slow

HARNESS = (
    "run",
    "watch",
    "check",
    "show",
    "explain",
    "list",
    "doctor",
    "fuzz",
    "replay",
    "faulty",
    "double",
    "record",
    "drift",
    "load",
    "soak",
    "matrix",
    "bisect",
    "mutate",
    "model",
    "connect",
    "example",
    "docs",
    "schema",
    "upgrade",
    "status",
    "report",
    "merge",
    "compare",
    "ledger",
    "scenario",
    "scenario validate",
    "scenario list",
    "scenario show",
    "scenario schema",
    "scenario from-trace",
    "scenario play",
    "profile",
    "profile list",
    "profile show",
    "profile new",
    "snapshots",
    "snapshots review",
    "snapshots list",
    "snapshots summary",
)


def _id(command: str) -> str:
    return command.replace(" ", "-") or "itself"


@pytest.fixture
def printed(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(PrintedText)


@pytest.mark.parametrize("command", ["", *HARNESS], ids=_id)
def test_help_of_harness_is_as_reviewed(command: str, printed: SnapshotAssertion) -> None:
    said = call("harness", *command.split(), "--help")
    assert said.status == 0
    assert said.out == printed


@pytest.mark.parametrize("command", ["", "app-server"], ids=_id)
def test_help_of_agent_is_as_reviewed(command: str, printed: SnapshotAssertion) -> None:
    said = call("agent", *command.split(), "--help")
    assert said.status == 0
    assert said.out == printed


def test_every_command_of_harness_is_reviewed_here() -> None:
    listed = {
        line.strip("│ ").split(" ", 1)[0]
        for line in call("harness", "--help").out.split("Commands")[1].splitlines()
        if line.startswith("│")
    }
    assert listed == {command.split(" ")[0] for command in HARNESS}


def test_an_explanation_is_as_reviewed(printed: SnapshotAssertion) -> None:
    said = call("harness", "explain", "interrupt.reply-empty")
    assert said.status == 0
    assert re.sub(r"(?m)^(its class: .*):\d+$", r"\1:LINE", said.out) == printed


def test_a_shown_trace_is_as_reviewed(printed: SnapshotAssertion) -> None:
    said = call("harness", "show", "fixtures/traces/good/interrupted.jsonl")
    assert said.status == 0
    assert said.out == printed


def test_input_is_shown_as_it_was_sent(printed: SnapshotAssertion) -> None:
    said = call("harness", "show", "--stdin", "fixtures/traces/good/interrupted.jsonl")
    assert said.status == 0
    assert said.out == printed
