"""The examples of the SDK's README run unchanged with our `agent`, with the output it shows."""

import json
import os
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_pages import ROOT, Block, blocks

import agent_sdk
from agent_sdk.options import ThreadOptions
from tests.processes import COMMANDS, run

pytestmark = [pytest.mark.slow, pytest.mark.socket]

README = ROOT / "sdk" / "python" / "README.md"
TEXT = README.read_text("utf-8")
WEATHER = {"city": "Oslo", "degrees": 4}


def _examples() -> list[tuple[Block, str]]:
    """The examples that run, each with what it prints."""
    found = blocks(README)
    return [(block, after.body) for block, after in pairwise(found) if block.info == "python run"]


def _install_agent(folder: Path, says: str) -> None:
    """An `agent` whose model says one thing, whatever it is asked."""
    reply = json.dumps([{"message": {"deltas": [says]}}])
    (folder / "readme.scenario.yaml").write_text(
        f"title: An example\nmodel:\n  - reply: {reply}\nclient:\n  - start_thread: {{as: t}}\n"
        "  - start_turn: {thread: t, text: hi, as: u}\n  - wait: {turn: u, status: completed}\n"
    )
    program = folder / "agent"
    command = f'"{COMMANDS}/agent" exec'
    script = folder / "readme.scenario.yaml"
    program.write_text(f'#!/bin/sh\nshift\nexec {command} --scenario "{script}" "$@"\n')
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("block", "printed"), _examples(), ids=[block.line for block, _ in _examples()]
)
def test_an_example_prints_what_it_says(block: Block, printed: str, tmp_path: Path) -> None:
    says = json.dumps(WEATHER) if "Weather" in block.body else "Hello. I greet people."
    _install_agent(tmp_path, says)
    script = tmp_path / "example.py"
    script.write_text(block.body, "utf-8")
    env = {"PATH": f"{tmp_path}:{os.defpath}", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    said = run([sys.executable, "-W", "error", script], cwd=tmp_path, env=env)
    assert (said.status, said.out, said.err) == (0, printed, "")


def test_there_are_examples() -> None:
    assert len(_examples()) == 5


def test_every_option_class_and_error_is_named() -> None:
    options = set(ThreadOptions.__dataclass_fields__)
    options |= {"base_url", "api_key", "agent_path", "env", "config", "output_schema", "signal"}
    classes = {name for name in agent_sdk.__all__ if name.endswith(("Event", "Item", "Error"))}
    classes -= {"ThreadEvent", "ThreadItem", "ThreadError"}
    assert [name for name in sorted(options) if f"| `{name}` |" not in TEXT] == []
    # Not in the tables: what begins like TodoItem is a part of an item.
    assert [name for name in sorted(classes - {"TodoItem"}) if name not in TEXT] == []
