"""MCP servers as processes: their environment and arguments, and no process is left."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from mcp_side import PROGRAM, odd, with_servers
from model_side import calls, says
from session_peer import session

import reference_server
from reference_server.sandbox.environment import PASSED_VARIABLES
from tests.agent_process import AgentProcess

pytestmark = [pytest.mark.slow, pytest.mark.socket]

ROOT = Path(reference_server.__file__).parents[1]
BOUND = 20.0
SECRETS = {
    "PROVIDER_API_KEY": "provider-secret-1",
    "OTHER_KEY": "other-secret-2",
    "REMOTE_TOKEN": "remote-secret-3",
}
MESSAGES = (
    {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}},
    {"id": 2, "method": "thread/start"},
)


class Agent:
    """`agent app-server` with the odd MCP server, a script for its model, and no sandbox."""

    def __init__(self, home: Path, steps: list[dict[str, Any]], config: str) -> None:
        home.mkdir()
        (home / "config.toml").write_text(config)
        script = home.parent / "play.scenario.yaml"
        play = {
            "title": "A play",
            "model": [*({"reply": [step]} for step in steps), {"reply": [{"message": "Done."}]}],
            "client": [{"start_thread": {"as": "t"}}],
        }
        script.write_text(yaml.safe_dump(play))
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(home.parent),
            "AGENT_HOME": str(home),
            "LC_ALL": "C.UTF-8",
            **SECRETS,
        }
        with (home.parent / "stderr").open("wb") as log:
            self.process = AgentProcess(
                [sys.executable, "-m", "reference_server", "app-server", "--scenario", str(script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
            )
        self.say(*MESSAGES)
        self.thread = self.until(lambda m: m.get("id") == 2)["result"]["thread"]["id"]

    def play(self) -> dict[str, Any]:
        """Run a turn; gives its last mcpToolCall item."""
        given = {"threadId": self.thread, "input": [{"type": "text", "text": "go"}]}
        self.say({"id": 3, "method": "turn/start", "params": given})
        item: dict[str, Any] = {}

        def over(message: dict[str, Any]) -> bool:
            nonlocal item
            if message.get("method") == "item/completed":
                one = message["params"]["item"]
                item = one if one["type"] == "mcpToolCall" else item
            return message.get("method") == "turn/completed"

        self.until(over)
        return item

    def say(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        for message in messages:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def leave(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def until(self, wanted: Any) -> dict[str, Any]:
        assert self.process.stdout is not None
        while not wanted(message := json.loads(self.process.stdout.readline())):
            pass
        return message


@pytest.fixture
def agents(tmp_path) -> Iterator[Any]:
    started: list[Agent] = []

    def start(*steps: dict[str, Any], more: str = "") -> Agent:
        config = CONFIG.replace("LOG", str(tmp_path / "log"))
        started.append(Agent(tmp_path / "home", list(steps), config + more))
        return started[-1]

    yield start
    for agent in started:
        agent.process.kill()
        agent.process.wait()
        agent.leave()
        assert agent.process.stdout is not None
        agent.process.stdout.close()


ODD = str(PROGRAM)
CONFIG = f"""
sandbox_mode = "danger-full-access"
approval_policy = "never"
[mcp_servers.odd]
transport = {{ type = "stdio", command = {sys.executable!r}, args = ["-SE", {ODD!r}, "--log=LOG"] }}
env = {{ ODD_API_KEY = "odd-secret-4", PLAIN = "yes" }}
"""


def called(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"mcp_call": {"server": "odd", "tool": tool, "arguments": arguments}}


def text_of(item: dict[str, Any]) -> str:
    return item["result"]["content"][0]["text"]


def programs(folder: Path) -> list[int]:
    """The ids of the processes of the odd server of this test."""
    log = f"--log={folder / 'log'}"
    return [
        one.pid for one in psutil.process_iter(["cmdline"]) if log in (one.info["cmdline"] or ())
    ]


def are_gone(*pids: int) -> None:
    found: list[psutil.Process] = []
    for pid in pids:
        # Asking whether it exists first would leave it time to go.
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    _, left = psutil.wait_procs(found, BOUND)
    assert left == []


def test_a_program_gets_what_all_programs_need_and_its_own_variables(agents) -> None:
    environment = json.loads(text_of(agents(called("environment")).play()))
    assert environment["ODD_API_KEY"] == "odd-secret-4"
    assert environment["PLAIN"] == "yes"
    own = {"ODD_API_KEY", "PLAIN", "TERM", "PAGER", "GIT_PAGER"}
    plain = {name for name in PASSED_VARIABLES if "*" not in name} | {"LC_ALL", "LC_CTYPE"}
    assert set(environment) <= own | plain
    assert not set(SECRETS.values()) & set(environment.values())


def test_complaints_of_a_program_are_in_the_log_without_secrets(agents, tmp_path) -> None:
    agent = agents(called("complain", count=500))
    agent.play()
    agent.leave()
    assert agent.process.wait(BOUND) == 0
    log = (tmp_path / "stderr").read_text()
    assert "agent: MCP server odd: 0: [key]\n" in log
    assert "odd-secret-4" not in log
    assert log.count("MCP server odd") < 210


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("tool", ["child", "stubborn"])
def test_nothing_is_left_of_it_when_the_agent_is_ended(agents, tmp_path, number, tool) -> None:
    agent = agents(called(tool))
    left = int(text_of(agent.play()))
    running = programs(tmp_path)
    assert running
    agent.process.send_signal(number)
    agent.process.wait(BOUND)
    are_gone(left, *running)


def test_a_server_that_is_not_enabled_is_never_started(agents, tmp_path) -> None:
    agent = agents(more="enabled = false\n")
    agent.play()
    assert programs(tmp_path) == []


def test_a_program_starts_with_the_first_turn_and_serves_all_turns(agents, tmp_path) -> None:
    agent = agents(called("child"), called("child"))
    assert programs(tmp_path) == []
    agent.play()
    agent.play()
    assert len(programs(tmp_path)) == 1


@pytest.mark.usefixtures("mcp_sdk")
async def test_the_log_of_an_agent_in_process_has_no_tracebacks(tmp_path, caplog) -> None:
    replies = [calls("mcp__odd__junk"), calls("mcp__odd__die", "call_2"), says("ok")]
    async with session(tmp_path, replies, settings=with_servers(odd())) as peer:
        await peer.run_turn(await peer.start_thread())
    assert all(record.exc_info is None for record in caplog.records)
    assert any("no message: " in record.getMessage() for record in caplog.records)
    assert max(len(record.getMessage()) for record in caplog.records) < 1_200
