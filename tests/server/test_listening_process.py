"""`agent app-server --listen` as a process: output, signals, exit status, commands."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import anyio
import psutil
import pytest
import websockets
from listening_peer import listening
from model_side import runs, says
from session_peer import config
from websockets.sync.client import connect

import reference_server
from reference_server.sandbox.places import OWN_SOCKET, TOKEN_FILE
from tests.agent_process import AgentProcess

pytestmark = [pytest.mark.socket, pytest.mark.slow]

ROOT = Path(reference_server.__file__).parents[1]
BOUND = 20
TOKEN = "0123456789abcdef"
HOLDING = """\
title: A reply that never goes on
model:
  - reply:
      - message: {deltas: ["Hel", {hold: never}, "lo"]}
client:
  - start_thread: {as: t}
  - start_turn: {thread: t, text: hi, as: u}
  - wait: {turn: u, status: completed}
"""


class Spawn(Protocol):
    def __call__(self, *options: str, shell: str = ..., **env: str) -> "Running": ...


class Running:
    """A server's process that listens."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    @property
    def address(self) -> str:
        """Read the address from the first line of stderr."""
        assert self.process.stderr is not None
        line = self.process.stderr.readline().decode()
        found = re.fullmatch(r"listening on (\S+)\n", line)
        assert found, line
        return found[1]

    def end(self) -> tuple[int, str]:
        """Give the exit status, and what it said on standard error."""
        _, stderr = self.process.communicate(timeout=BOUND)
        return self.process.returncode, stderr.decode()


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str, shell: str = "", **environment: str) -> Running:
        command = [sys.executable, "-m", "reference_server", "app-server", *options]
        process = AgentProcess(
            ["/bin/sh", "-c", shell, "sh", *command] if shell else command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(ROOT),
                "HOME": str(tmp_path),
                "AGENT_HOME": str(tmp_path / "home"),
                **environment,
            },
        )
        started.append(process)
        return Running(process)

    yield start
    for process in started:
        process.kill()
        process.communicate()


class Client:
    """A client over a WebSocket."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def say(self, method: str, **params: Any) -> None:
        self.connection.send(json.dumps({"id": 1, "method": method, "params": params}))

    def until(self, method: str | None) -> dict[str, Any]:
        while True:
            message = json.loads(self.connection.recv(BOUND))
            if message.get("method") == method:
                return message


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_interrupts_tells_and_ends_in_order(spawn, tmp_path: Path, number: int) -> None:
    scenario = tmp_path / "holding.scenario.yaml"
    scenario.write_text(HOLDING)
    server = spawn("--scenario", str(scenario), "--listen", "ws://127.0.0.1:0")
    with connect(server.address, proxy=None) as connection:
        client = Client(connection)
        client.say("thread/start")
        thread = client.until(None)["result"]["thread"]["id"]
        client.say("turn/start", threadId=thread, input=[{"type": "text", "text": "hi"}])
        client.until("item/agentMessage/delta")
        server.process.send_signal(number)
        assert client.until("turn/completed")["params"]["turn"]["status"] == "interrupted"
        with pytest.raises(websockets.ConnectionClosed) as closed:
            connection.recv(BOUND)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001
    status, told = server.end()
    assert (status, told.splitlines()[0]) == (0, "connection 1 (holding): GREEN")


def test_a_server_without_standard_streams_listens_and_removes_its_socket(
    spawn, tmp_path: Path
) -> None:
    server = spawn("--listen", "unix:s", shell='exec "$@" <&- >&-')
    assert server.address == "unix:s"
    with socket.socket(socket.AF_UNIX) as made:
        made.settimeout(BOUND)
        made.connect(str(tmp_path / "s"))
        made.sendall(b'{"id":1,"method":"initialize","params":{}}\n')
        with made.makefile("rb") as lines:
            assert json.loads(lines.readline())["id"] == 1
            server.process.terminate()
            assert lines.read() == b""
    assert server.end() == (0, "")
    assert not (tmp_path / "s").exists()


def test_a_server_that_was_killed_is_followed_by_another(spawn, tmp_path: Path) -> None:
    first = spawn("--listen", "unix:s")
    assert first.address
    second = spawn("--listen", "unix:s")
    status, said = second.end()
    assert status == 2
    assert said == "--listen unix:s: another server listens there\n"
    first.process.kill()
    first.process.wait(BOUND)
    assert (tmp_path / "s").exists()
    third = spawn("--listen", "unix:s")
    assert third.address == "unix:s"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--listen", "ws://0.0.0.0:0"], "clients must have a token"),
        (["--listen", "ws://127.0.0.1:0", "--token-env", "NONE"], "at least 16 characters"),
        (["--listen", "unix:."], "no socket"),
        (["--listen", "unix:none/s"], "no folder"),
        (["--listen", "http://127.0.0.1:1"], "unknown kind"),
        (["--token-env", "T"], "need --listen"),
        (["--max-connections", "5"], "need --listen"),
        (["--allow-origin", "https://example.org"], "need --listen"),
        (["--listen", "unix:s", "--token-env", "T", "--token-file", "f"], "not allowed with"),
    ],
)
def test_impossible_options_are_one_clear_line_and_status_2(spawn, options, words: str) -> None:
    status, said = spawn(*options).end()
    assert status == 2
    assert words in said.splitlines()[-1]
    assert "Traceback" not in said


def test_the_token_is_asked_for_and_is_in_no_output(spawn) -> None:
    server = spawn("--listen", "ws://127.0.0.1:0", "--token-env", "TOKEN", TOKEN=TOKEN)
    address = server.address
    with pytest.raises(websockets.InvalidStatus):
        connect(address, proxy=None)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with connect(address, proxy=None, additional_headers=headers) as connection:
        client = Client(connection)
        client.say("initialize")
        assert "result" in client.until(None)
    server.process.terminate()
    status, said = server.end()
    assert status == 0
    assert TOKEN not in said


def test_ten_thousand_requests_over_a_pipe_are_all_answered(tmp_path: Path) -> None:
    """None of the answers is read before all is written; what waits takes little memory."""
    process = subprocess.Popen(
        [sys.executable, "-m", "reference_server", "app-server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(tmp_path),
        },
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        request = b'{"id":%d,"method":"thread/read","params":{"threadId":"thr_%d"}}\n'
        process.stdin.write(b"".join(request % (number, number) for number in range(10_000)))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(10_000)]
        memory = psutil.Process(process.pid).memory_info().rss
        process.stdin.close()
    assert sorted(one["id"] for one in answers) == list(range(10_000))
    assert {one["error"]["code"] for one in answers} == {-32600}
    assert memory < 150 << 20


REACH = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('{}'); print('reach' + 'ed')"


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize("policy", ["read-only", "workspace-write", "danger-full-access"])
@pytest.mark.parametrize("network", [False, True])
async def test_no_confined_command_reaches_the_server_that_asks_about_it(
    tmp_path: Path, policy: str, network: bool
) -> None:
    """It could answer yes to its own questions."""
    path, token = tmp_path / "work" / "socket", tmp_path / "work" / "token"
    path.parent.mkdir()
    token.write_text(TOKEN)
    environment = {**os.environ, OWN_SOCKET: str(path), TOKEN_FILE: str(token)}
    command = f'python3 -c "{REACH.format(path)}"; cat {token}'
    settings = replace(config(), environment=environment)
    async with listening(
        path.parent / "home", "unix", [runs(command), says("done")], settings=settings
    ) as server:
        assert server.address == f"unix:{path}"
        async with server.client() as peer:
            thread = await peer.start_thread(
                cwd=str(path.parent), approvalPolicy="never", sandbox=policy
            )
            given: dict[str, Any] = {}
            if network and policy == "workspace-write":
                given["sandboxPolicy"] = {
                    "type": "workspaceWrite",
                    "writableRoots": [],
                    "networkAccess": True,
                }
            with anyio.fail_after(BOUND):
                await peer.run_turn(thread, **given)
            (item,) = peer.completed_items("commandExecution")
            is_free = policy == "danger-full-access"
            assert ("reached" in item["aggregatedOutput"]) == is_free
            assert (TOKEN in item["aggregatedOutput"]) == is_free
