"""`harness faulty --listen`: clients by WebSocket or unix socket, each with its own faults."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import call
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect, unix_connect
from websockets.typing import Origin

from tests.processes import BOUND, COMMANDS

pytestmark = [pytest.mark.slow, pytest.mark.socket]

FAULT = ("--fault", "turn-ends-twice")
AGENT = (str(COMMANDS / "agent"), "app-server", "--scenario", "turns/plain-turn")
HELLO = {"clientInfo": {"name": "test", "version": "1"}}
LISTENING = "faulty: listening at "
Send = Callable[[str], None]
Receive = Callable[[], str]


@contextmanager
def listening(
    folder: Path, *server: str, status: int, address: str = "ws://127.0.0.1:0"
) -> Generator[tuple[str, "subprocess.Popen[str]"]]:
    """The address of a proxy before this server; it is ended by TERM, then with this status."""
    process = subprocess.Popen(
        [COMMANDS / "harness", "faulty", *FAULT, "--listen", address, "--", *server],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "AGENT_HOME": str(folder)},
        cwd=folder,
    )
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if line.startswith(LISTENING))
        yield line.removeprefix(LISTENING).strip(), process
        process.send_signal(signal.SIGTERM)
        assert process.wait(BOUND) == status
    finally:
        process.kill()
        process.communicate()


@contextmanager
def client_of(address: str, folder: Path) -> Generator[tuple[Send, Receive]]:
    """Connect to this address; yield a function that sends and one that receives a message."""
    if not address.startswith("unix:"):
        over_unix = address.startswith("ws+unix:")
        path = str(folder / address.removeprefix("ws+unix:"))
        opened = unix_connect(path) if over_unix else connect(address, open_timeout=BOUND)
        with opened as client:
            yield client.send, lambda: str(client.recv(BOUND))
        return
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(BOUND)
        stream.connect(str(folder / address.removeprefix("unix:")))
        # Not one file for both: a text file forgets what it has read ahead when it is written to.
        with stream.makefile("r", encoding="utf-8") as lines:
            yield lambda text: stream.sendall(f"{text}\n".encode()), lines.readline


def ends_of_a_turn(address: str, folder: Path) -> int:
    """Return how often the end of a turn reaches a client before its answer to thread/read."""
    with client_of(address, folder) as (send, receive):

        def ask(number: int, method: str, params: object) -> None:
            send(json.dumps({"id": number, "method": method, "params": params}))

        ask(1, "initialize", HELLO)
        ask(2, "thread/start", {})
        ends, thread = 0, ""
        while True:
            message = json.loads(receive())
            if message.get("id") == 2:
                thread = message["result"]["thread"]["id"]
                said = [{"type": "text", "text": "hi"}]
                ask(3, "turn/start", {"threadId": thread, "input": said})
            if message.get("method") == "turn/completed":
                ends += 1
                if ends == 1:
                    ask(4, "thread/read", {"threadId": thread})
            if message.get("id") == 4:
                return ends


@pytest.mark.parametrize("address", ["ws://127.0.0.1:0", "unix:s", "ws+unix:s"])
@pytest.mark.parametrize(
    ("more", "status"),
    [((), -signal.SIGTERM), (("--listen", "{listen}"), 0)],
    ids=["one server a client", "one server that listens"],
)
def test_each_client_meets_the_faults(
    address: str, more: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    with listening(tmp_path, *AGENT, *more, status=status, address=address) as (shown, _):
        assert [ends_of_a_turn(shown, tmp_path) for _ in range(2)] == [2, 2]
    assert not (tmp_path / "s").exists()


def test_a_page_in_a_browser_is_refused(tmp_path: Path) -> None:
    page = Origin("http://example.org")
    with (
        listening(tmp_path, *AGENT, status=-signal.SIGTERM) as (address, _),
        pytest.raises(InvalidStatus),
        connect(address, origin=page),
    ):
        pass


def test_a_client_that_has_said_all_hears_the_end_of_its_server(tmp_path: Path) -> None:
    greeting = json.dumps({"id": 1, "method": "initialize", "params": HELLO})
    with (
        listening(tmp_path, *AGENT, status=-signal.SIGTERM, address="unix:s"),
        socket.socket(socket.AF_UNIX) as stream,
    ):
        stream.settimeout(BOUND)
        stream.connect(str(tmp_path / "s"))
        stream.sendall(f"{greeting}\n".encode())
        stream.shutdown(socket.SHUT_WR)
        with stream.makefile("r", encoding="utf-8") as lines:
            assert [json.loads(line)["id"] for line in lines] == [1]


def test_the_end_of_a_server_ends_the_connection_of_its_client(tmp_path: Path) -> None:
    with (
        listening(tmp_path, "true", status=-signal.SIGTERM) as (address, _),
        connect(address, open_timeout=BOUND) as client,
    ):
        assert list(client) == []


def test_the_end_of_the_server_that_listens_is_ours(tmp_path: Path) -> None:
    said = call(
        *("harness", "faulty", *FAULT, "--listen", "ws://127.0.0.1:0"),
        *("--", "sh", "-c", "exit 5 {listen}"),
        cwd=tmp_path,
    )
    assert said.status == 5


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("ws://0.0.0.0:4500", "is not on this machine"),
        ("http://127.0.0.1:4500", "--listen takes ws://127.0.0.1:PORT"),
        ("unix:README.md", "cannot listen at unix:README.md: there is another file"),
        ("ws://127.0.0.1:99999", "is no address"),
    ],
)
def test_an_address_that_cannot_be_used_is_told(address: str, told: str) -> None:
    said = call("harness", "faulty", *FAULT, "--listen", address, "--", "cat")
    assert (said.status, told in said.err) == (2, True)


def test_an_address_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"ws://127.0.0.1:{taken.getsockname()[1]}"
        said = call("harness", "faulty", *FAULT, "--listen", address, "--", "cat")
    assert said.status == 2
    assert f"cannot listen at {address}" in said.err
