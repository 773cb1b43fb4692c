"""Modules that a server imports for its first turn, and how the interpreter is set meanwhile."""

import gc
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import reference_server
from reference_server.config.home import Home
from reference_server.config.model import Config
from reference_server.engine.tool_provider import ToolProvider
from reference_server.engine.tools.offered import offers
from reference_server.late_imports import SWITCH_SECONDS, importing
from reference_server.session.server_requests import ServerRequests

ROOT = Path(reference_server.__file__).parents[1]
BOUND = 60
SCENARIO = """\
title: A reply
model: [{reply: [{message: "Hello."}]}]
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: hi, as: u}
  - wait: {turn: u, status: completed}
"""
# The client's side: the server runs in a thread's stead, its requests come one after the other.
PLAYED = """
import json, os, sys, threading
ours, theirs = os.pipe(), os.pipe()
words = os.dup(1)
os.dup2(ours[0], 0), os.dup2(theirs[1], 1)

def client():
    answers = os.fdopen(theirs[0])
    def say(**message):
        os.write(ours[1], json.dumps(message).encode() + b"\\n")
    def hear(wanted):
        for line in answers:
            if wanted(message := json.loads(line)):
                return message
    say(id=1, method="initialize", params={"clientInfo": {"name": "x"}})
    hear(lambda message: message.get("id") == 1)
    say(id=2, method="thread/start", params={"cwd": os.getcwd()})
    thread = hear(lambda message: message.get("id") == 2)["result"]["thread"]["id"]
    text = [{"type": "text", "text": "hi"}]
    say(id=3, method="turn/start", params={"threadId": thread, "input": text})
    ended = hear(lambda message: message.get("method") == "turn/completed")
    status = ended["params"]["turn"]["status"]
    os.write(words, json.dumps([status, *sys.modules]).encode())
    os.close(ours[1])

threading.Thread(target=client, daemon=True).start()
from reference_server.cli import main
main(["app-server", "--scenario", sys.argv[1]])
"""


@pytest.mark.slow
@pytest.mark.socket
def test_a_turn_without_calls_waits_for_nothing_else_to_be_imported(tmp_path) -> None:
    scenario = tmp_path / "reply.scenario.yaml"
    scenario.write_text(SCENARIO)
    done = subprocess.run(
        [sys.executable, "-c", PLAYED, str(scenario)],
        capture_output=True,
        text=True,
        check=True,
        timeout=BOUND,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
    )
    status, *imported = json.loads(done.stdout)
    assert status == "completed"
    others = {
        "handlers.skills",
        "handlers.thread_list",
        "engine.tools.standard",
        "engine.tools.shell",
        "exec.process",
        "exec.sandbox",
        "skills.library",
        "skills.invoking",
        "patch.apply",
        "patch.parse",
    }
    assert not others & {name.removeprefix("reference_server.") for name in imported}
    # Nor for MCP, where no server is configured.
    assert not [name for name in imported if re.match(r"(reference_server\.)?mcp\b", name)]
    assert "reference_server.engine.turn" in imported


def test_what_is_offered_is_what_can_be_carried_out(tmp_path) -> None:
    tools = ToolProvider(Home(tmp_path), Config(), ServerRequests())
    offered = [offer["name"] for offer in tools.offers() if "name" in offer]
    assert offered == tools.toolbox.names


@pytest.mark.parametrize("setting", ["live", "disabled"])
def test_the_search_on_the_web_is_offered_where_it_is_switched_on(setting) -> None:
    kinds = [offer["type"] for offer in offers(Config(web_search=setting))]
    assert ("web_search" in kinds) is (setting == "live")


def test_the_collector_and_the_switch_between_threads_are_as_before_after_two_servers() -> None:
    usual = sys.getswitchinterval()
    first, second = importing(), importing()
    with first:
        assert (gc.isenabled(), sys.getswitchinterval()) == (False, pytest.approx(SWITCH_SECONDS))
        second.__enter__()
    second.__exit__(None, None, None)
    assert (gc.isenabled(), sys.getswitchinterval()) == (True, pytest.approx(usual))
