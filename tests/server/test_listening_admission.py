"""Admission of connections: token, Origin, Host; invalid handshakes; the number at once."""

import contextlib
import resource
import socket
from collections.abc import Callable
from typing import Any

import anyio
import pytest
import websockets
from anyio import to_thread
from listening_peer import KINDS, WEBSOCKETS, Listening, listening

from reference_server import reception
from reference_server.transport import handshake
from reference_server.transport.handshake import Admission

pytestmark = [pytest.mark.socket]

BOUND = 20.0
TOKEN = "0123456789abcdef"
BEARS = {"Authorization": f"Bearer {TOKEN}"}


async def refused(server: Listening, **options: Any) -> tuple[int, bytes, str]:
    """Give the status, the body and the challenge with which a handshake is refused."""
    with pytest.raises(websockets.InvalidStatus) as found:
        async with server.connection(**options):
            pytest.fail("it was let in")
    response = found.value.response
    return (
        response.status_code,
        bytes(response.body or b""),
        response.headers.get("WWW-Authenticate", ""),
    )


async def is_let_in(server: Listening, **options: Any) -> None:
    async with server.client(**options) as peer:
        assert "result" in await peer.request("initialize", {})


@pytest.mark.parametrize("kind", WEBSOCKETS)
async def test_with_a_token_nobody_else_is_let_in_and_nothing_is_said_of_it(tmp_path, kind) -> None:
    async with listening(tmp_path / "home", kind, admission=Admission(token=TOKEN)) as server:
        await is_let_in(server, additional_headers=BEARS)
        await is_let_in(server, additional_headers={"Authorization": f"bearer {TOKEN}"})
        answers = {
            await refused(server, additional_headers=headers)
            for headers in (
                {},
                {"Authorization": ""},
                {"Authorization": "Bearer"},
                {"Authorization": "Bearer "},
                {"Authorization": TOKEN},
                {"Authorization": f"Basic {TOKEN}"},
                {"Authorization": f"Bearer {TOKEN[:-1]}"},
                {"Authorization": f"Bearer {TOKEN}0"},
                {"Authorization": f"Bearer {TOKEN} {TOKEN}"},
                {"Authorization": "Bearer \xe9"},
                # Whoever has no token is not told what else is wrong.
                {"Origin": "https://example.org"},
            )
        }
        assert len(answers) == 1
        status, body, challenge = answers.pop()
        assert status == 401
        assert TOKEN.encode() not in body
        assert challenge == "Bearer"


@pytest.mark.parametrize("kind", WEBSOCKETS)
async def test_pages_of_browsers_are_refused_but_those_that_were_named(tmp_path, kind) -> None:
    admission = Admission(origins=frozenset({"https://ide.example.org"}))
    async with listening(tmp_path / "home", kind, admission=admission) as server:
        await is_let_in(server, additional_headers={"Origin": "https://ide.example.org"})
        for origin in (
            "null",
            "http://localhost",
            "https://example.org",
            "https://ide.example.org.evil.example",
            "http://ide.example.org",
        ):
            status, _, _ = await refused(server, additional_headers={"Origin": origin})
            assert status == 403, origin


@pytest.mark.parametrize(
    ("host", "let_in"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1:4500", True),
        ("localhost:4500", True),
        ("LocalHost", True),
        ("[::1]", True),
        ("[::1]:4500", True),
        ("evil.example", False),
        ("localhost.evil.example:80", False),
        ("127.0.0.1.evil.example", False),
        ("192.168.1.1:4500", False),
        ("0.0.0.0:4500", False),
        ("", False),
    ],
)
async def test_the_host_is_an_address_of_this_machine(host: str, let_in: bool) -> None:
    found = Admission().refusal(handshake.Headers({"Host": host}))
    assert (found is None) == let_in
    assert Admission(checks_host=False).refusal(handshake.Headers({"Host": host})) is None


async def test_two_headers_of_one_name_are_refused() -> None:
    for name in ("Host", "Origin", "Authorization"):
        headers = handshake.Headers([("Host", "localhost"), (name, "a"), (name, "b")])
        found = Admission(token=TOKEN).refusal(headers)
        assert found is not None
        assert found[0] == 400, name


def ask(made: socket.socket, request: bytes) -> bytes:
    """Say something on a raw connection, and give all that is answered until it is closed."""
    made.settimeout(BOUND)
    answer = b""
    with made, contextlib.suppress(ConnectionError):
        made.sendall(request)
        while data := made.recv(65536):
            answer += data
    return answer


UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


def shake_hands(made: socket.socket) -> None:
    made.settimeout(BOUND)
    made.sendall(UPGRADE + b"\r\n")
    assert made.recv(65536).startswith(b"HTTP/1.1 101")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"426"),
        (UPGRADE.replace(b"GET", b"POST") + b"\r\n", b"405"),
        (UPGRADE.replace(b": 13", b": 12") + b"\r\n", b"400"),
        (UPGRADE.replace(b"AAAA==", b"") + b"\r\n", b"400"),
        (UPGRADE + b"X: y\r\n" * 1000 + b"\r\n", b"431"),
        (UPGRADE + b"X: " + b"y" * 100_000 + b"\r\n\r\n", b"431"),
        (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (UPGRADE + b"Content-Length: 5\r\n\r\nhello", None),
        (b'{"id":1,"method":"initialize","params":{}}\n', None),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n", None),
        (b"\n" * 10, None),
    ],
)
async def test_an_invalid_handshake_is_refused_and_closed(
    tmp_path, request_bytes: bytes, status: bytes | None
) -> None:
    async with listening(tmp_path / "home") as server:
        answer = await to_thread.run_sync(ask, server.raw(), request_bytes)
        if status is None:
            assert answer == b""
        elif answer:  # A request that is not read to its end may cut the answer off.
            assert answer.split()[1] == status
        await is_let_in(server)


@pytest.mark.parametrize(
    "frame",
    [b"\x81\x82\x00\x00\x00\x00{}", b"\x88\x80\x00\x00\x00\x00", b"\xff\xff", b"\x89\x80\0\0\0\0"],
)
async def test_who_does_not_wait_for_the_answer_to_the_handshake_is_refused(
    tmp_path, frame: bytes
) -> None:
    async with listening(tmp_path / "home") as server:
        answer = await to_thread.run_sync(ask, server.raw(), UPGRADE + b"\r\n" + frame)
        assert b"101" not in answer
        await is_let_in(server)


async def test_no_compression_is_agreed_to(tmp_path) -> None:
    async with (
        listening(tmp_path / "home") as server,
        server.websocket(compression="deflate") as line,
    ):
        assert line.connection.protocol.extensions == []
        line.connection.transport.write(b"\xc1\x82\x00\x00\x00\x00xx")
        with pytest.raises(websockets.ConnectionClosed) as closed:
            await line.connection.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1002


async def test_fragments_without_end_do_not_fill_the_memory(tmp_path) -> None:
    """A hundred thousand frames of no bytes, then as many of one byte each."""
    empty = b"\x00\x80\x00\x00\x00\x00" * 10_000
    one_byte = b"\x00\x81\x00\x00\x00\x00x" * 10_000
    async with listening(tmp_path / "home") as server:
        made = server.raw()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        def flood() -> bytes:
            with made:
                shake_hands(made)
                made.sendall(b"\x01\x80\x00\x00\x00\x00")
                for piece in (empty, one_byte):
                    for _ in range(10):
                        made.sendall(piece)
                made.sendall(b"\x80\x80\x00\x00\x00\x00")
                return made.recv(65536)

        assert b"not JSON" in await to_thread.run_sync(flood)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000
        await is_let_in(server)


async def test_pings_whose_answers_nobody_reads_do_not_fill_the_memory(tmp_path) -> None:
    ping = (b"\x89\xfd\x00\x00\x00\x00" + b"x" * 125) * 1000
    async with listening(tmp_path / "home") as server:
        made = server.raw()
        sent = 0

        def flood() -> None:
            nonlocal sent
            shake_hands(made)
            made.settimeout(2.0)
            with contextlib.suppress(TimeoutError):
                while sent < 1 << 28:
                    made.sendall(ping)
                    sent += len(ping)

        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        await to_thread.run_sync(flood)
        # The server reads no more; what was sent is in the buffers of the sockets.
        assert sent < 1 << 28
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000
        made.close()
        await is_let_in(server)


@pytest.mark.parametrize(
    "say",
    [
        pytest.param(lambda made: None, id="nothing"),
        pytest.param(lambda made: made.send(UPGRADE[:-20]), id="half"),
    ],
)
async def test_a_handshake_that_takes_for_ever_is_ended(
    tmp_path, monkeypatch, say: Callable[[socket.socket], None]
) -> None:
    monkeypatch.setattr(handshake, "HANDSHAKE_TIME", 0.2)
    async with listening(tmp_path / "home") as server:
        made = server.raw()
        say(made)
        assert await to_thread.run_sync(ask, made, b"") == b""


async def test_a_server_that_ends_waits_for_no_handshake(tmp_path) -> None:
    async with listening(tmp_path / "home") as server:
        with server.raw() as made:
            made.send(UPGRADE[:-20])
            with anyio.fail_after(BOUND):
                while not server.reception._admitting:
                    await anyio.lowlevel.checkpoint()
            server.server.stop()
            with anyio.fail_after(handshake.HANDSHAKE_TIME / 2):
                await server.ended.wait()


@pytest.mark.parametrize("own_limit", [None, 3], ids=["usual", "own"])
@pytest.mark.parametrize("kind", KINDS)
async def test_there_is_a_limit_on_connections_and_who_is_there_stays(
    tmp_path, kind, own_limit, monkeypatch
) -> None:
    monkeypatch.setattr(reception, "CONNECTIONS", 256 if own_limit else 3)
    admission = Admission(max_connections=own_limit)
    async with listening(tmp_path / "home", kind, admission=admission) as server:
        async with server.client() as first, server.client() as second:
            for peer in (first, second):
                await peer.request("initialize", {})
            async with server.client() as third:
                await third.request("initialize", {})
                if kind == "unix":
                    async with server.client() as fourth:
                        assert "no more are taken" in (await fourth.receive())["error"]["message"]
                else:
                    status, body, _ = await refused(server)
                    assert status == 503
                    assert b"no more are taken" in body
                assert "result" in await first.request("thread/loaded/list")
        with anyio.fail_after(BOUND):
            while server.reception._count:
                await anyio.lowlevel.checkpoint()
        await is_let_in(server)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ws", "unix"])
async def test_thousands_of_connections_at_once_leave_the_others_alone(tmp_path, kind) -> None:
    """The number of connections is the most that this process can open, since it has both ends."""
    most = min(2000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2 - 200)
    async with listening(tmp_path / "home", kind) as server, server.client() as first:
        await first.request("initialize", {})
        made: list[socket.socket] = []

        def connect() -> None:
            for _ in range(most):
                with contextlib.suppress(OSError):
                    made.append(server.raw())

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(to_thread.run_sync, connect)
                for _ in range(20):
                    assert "result" in await first.request("thread/loaded/list")
        finally:
            for one in made:
                one.close()
        with anyio.fail_after(BOUND):
            while server.reception._count > 1:
                await anyio.lowlevel.checkpoint()
        await is_let_in(server)
