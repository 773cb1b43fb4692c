"""Listening servers: addresses, readiness, connections, and error messages."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest

from harness.client.target.connecting import free_address
from harness.client.target.launch import launch
from harness.client.target.process import ServerProcess, start
from harness.client.target.profile import Bounds, Listening, Profile, parse_profile
from harness.client.target.run_folders import RunFolder
from harness.client.transport.connect import check_address
from harness.errors import TargetError, TargetGone, UsageError

pytestmark = [pytest.mark.socket]

BOUNDS = Bounds(start=10, stop=5)
# Echoes lines, or messages, on the address that it is given; says so on its standard output.
ECHO = """
import asyncio, sys
from websockets.asyncio.server import serve, unix_serve

async def line(reader, writer):
    while text := await reader.readline():
        writer.write(text)
        await writer.drain()
    writer.close()

async def message(connection):
    async for text in connection:
        await connection.send(text)

async def main(address):
    print("about to listen", flush=True)
    path = address.removeprefix("unix://")
    if path != address and sys.argv[2] == "ws-unix":
        server = await unix_serve(message, path)
    elif path != address:
        server = await asyncio.start_unix_server(line, path)
    else:
        server = await serve(message, "127.0.0.1", int(address.rpartition(":")[2]))
    await server.serve_forever()

asyncio.run(main(sys.argv[1]))
"""
KINDS: list[Listening] = ["ws", "unix", "ws-unix"]


def profile(script: str, kind: Listening = "ws") -> Profile:
    command = [sys.executable, "-c", script, "{listen}", kind]
    return Profile(name="test", command=command, listen=kind)


async def launched(folder: Path, script: str, kind: Listening = "ws") -> ServerProcess:
    run = RunFolder(folder, "test")
    with anyio.fail_after(20):
        process, _ = await launch(profile(script, kind), run, BOUNDS, model_url="http://model")
    return process


@pytest.fixture
def near_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a socket must be short: the current folder is where the sockets are."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_that_listens_is_spoken_to_and_ended(
    kind: Listening, near_folder: Path
) -> None:
    process = await launched(near_folder, ECHO, kind)
    with anyio.fail_after(20):
        await process.transport.send(b'{"first":1}')
        assert (await process.transport.receive())[0].raw == b'{"first":1}'
        other = await process.connect(5)
        await other.send(b'{"other":1}')
        assert (await other.receive())[0].raw == b'{"other":1}'
        ending = await process.stop(5)
        assert ending.push == "TERM"
        assert ending.survivors == ()
        for transport in (process.transport, other):
            with pytest.raises(TargetGone):
                await transport.receive()
    assert "about to listen" in process.stderr_tail()


async def test_a_server_that_ends_before_it_listens_is_said_at_once(near_folder: Path) -> None:
    with pytest.raises(TargetError) as caught:
        await launched(near_folder, "import sys; print('no config'); sys.exit(3)")
    assert "ended with exit status 3 before it listened at ws://127.0.0.1:" in str(caught.value)
    assert "no config" in str(caught.value)


async def test_a_server_that_never_listens_is_given_up_within_the_bound(tmp_path: Path) -> None:
    process = await start(
        [sys.executable, "-c", "import signal; signal.pause()"],
        cwd=tmp_path,
        env=dict(os.environ),
        stderr=tmp_path / "stderr",
        owner="test",
        home=tmp_path,
        temporary=tmp_path,
        address=free_address("ws", tmp_path),
    )
    with (
        anyio.fail_after(20),
        pytest.raises(TargetError, match=r"did not listen .* within 0\.1 s"),
    ):
        await process.connect(0.1)
    assert (await process.stop(5)).returncode == -15


async def test_a_listener_of_another_protocol_is_reported(near_folder: Path) -> None:
    script = (
        "import socket, sys\n"
        "s = socket.create_server(('127.0.0.1', int(sys.argv[1].rpartition(':')[2])))\n"
        "while True: s.accept()[0].sendall(b'220 mail\\r\\n\\r\\n')\n"
    )
    with pytest.raises(TargetError, match="does not speak WebSocket"):
        await launched(near_folder, script)


@pytest.mark.parametrize("kind", KINDS)
def test_an_address_is_one_that_can_be_connected_to(kind: Listening, near_folder: Path) -> None:
    address = free_address(kind, near_folder)
    check_address(address)
    assert address.startswith("ws://127.0.0.1:" if kind == "ws" else "unix://")


def test_a_socket_whose_path_is_too_long_is_refused(near_folder: Path) -> None:
    with pytest.raises(UsageError, match="shorter path"):
        free_address("unix", near_folder / ("x" * 120))


def test_a_command_that_asks_for_an_address_listens_on_a_websocket() -> None:
    assert Profile(name="p", command=["server", "--stdio"]).listening_kind() is None
    assert Profile(name="p", command=["server", "--listen={listen}"]).listening_kind() == "ws"
    assert Profile(name="p", command=["server"], env={"ON": "{listen}"}).listening_kind() == "ws"
    assert profile("", "unix").listening_kind() == "unix"


def test_a_profile_that_listens_must_tell_the_server_where() -> None:
    with pytest.raises(UsageError, match=r"put \{listen\} into the command"):
        Profile(name="p", command=["server"], listen="ws").listening_kind()


def test_another_way_to_listen_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="'stdio', 'ws', 'unix' or 'ws-unix'"):
        parse_profile('name = "p"\nlisten = "tcp"\n', "p.toml")
