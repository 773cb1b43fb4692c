"""Properties of sockets alone: addresses, handshakes, control and binary frames, close codes.

The other side is the library's own server if possible, so that we do not merely understand
ourselves; frames that a proper server would never send are written by hand.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from websockets.asyncio.server import ServerConnection, serve
from websockets.frames import Close, Frame, Opcode

from harness.client.transport.connect import Connection, check_address, connect
from harness.client.transport.jsonl import Line
from harness.client.transport.resets import reset_socket
from harness.client.transport.websocket import HandshakeFailed
from harness.errors import TargetGone, UsageError
from harness.trace.frame import Damage, DamageKind

from .links import LIMIT, Link, _WebSocketFar, websocket_link

pytestmark = [pytest.mark.socket]

BOUND = 20.0
Talk = Callable[[ServerConnection], Awaitable[None]]


@asynccontextmanager
async def talking_to(talk: Talk, **options: Any) -> AsyncGenerator[Connection]:
    """A connection to the library's own server."""
    with anyio.fail_after(BOUND):
        async with serve(talk, "127.0.0.1", 0, **options) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            near = await connect(f"ws://127.0.0.1:{port}", limit=LIMIT)
            try:
                yield near
            finally:
                await near.release()


async def test_a_reset_of_tcp_is_an_error_for_the_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = await anyio.connect_tcp("127.0.0.1", server.getsockname()[1])
        far, _ = server.accept()
        with far:
            far.settimeout(BOUND)
            await reset_socket(near)
            with pytest.raises(ConnectionResetError):
                far.recv(1)


@asynccontextmanager
async def raw_link() -> AsyncGenerator[tuple[Link, _WebSocketFar]]:
    with anyio.fail_after(BOUND):
        async with websocket_link() as link:
            assert isinstance(link.far, _WebSocketFar)
            yield link, link.far


async def to_the_end(near: Connection | Any) -> list[Line]:
    found: list[Line] = []
    try:
        while True:
            found += await near.receive()
    except TargetGone:
        return found


async def echo(server: ServerConnection) -> None:
    async for message in server:
        assert isinstance(message, str), "a text frame"
        await server.send(message)


async def test_a_proper_server_understands_us_and_we_it() -> None:
    async with talking_to(echo) as near:
        for text in (b'{"id":1}', '{"text":"\u00e9 \u2028 \U0001f600"}'.encode(), b"x" * 90_000):
            await near.send(text)
            assert await near.receive() == [Line(text)]
        await near.aclose()
        assert await to_the_end(near) == []


async def test_pings_are_answered_while_messages_come() -> None:
    async def pinging(server: ServerConnection) -> None:
        await (await server.ping())
        await server.send("after the pong")

    async with talking_to(pinging) as near:
        assert await near.receive() == [Line(b"after the pong")]


async def test_fragments_make_one_message() -> None:
    async def in_parts(server: ServerConnection) -> None:
        await server.send(iter(['{"a', '":', "1}"]))

    async with talking_to(in_parts) as near:
        assert await near.receive() == [Line(b'{"a":1}')]


async def test_line_ends_inside_a_message_do_not_end_it() -> None:
    async def pretty(server: ServerConnection) -> None:
        await server.send('{\n  "a": 1\n}\n')

    async with talking_to(pretty) as near:
        assert await near.receive() == [Line(b'{\n  "a": 1\n}\n')]


async def test_a_binary_frame_is_kept_and_said() -> None:
    async def binary(server: ServerConnection) -> None:
        await server.send(b'{"a":1}')
        await server.send("text")

    async with talking_to(binary) as near:
        found = await to_the_end(near)
    assert found == [
        Line(
            b'{"a":1}',
            Damage(DamageKind.BINARY, "a binary frame of 7 bytes, not a text frame"),
        ),
        Line(b"text"),
    ]


@pytest.mark.parametrize("code", [1000, 1001])
async def test_a_plain_close_says_nothing(code: int) -> None:
    async def close(server: ServerConnection) -> None:
        await server.close(code, "bye")

    async with talking_to(close) as near:
        assert await to_the_end(near) == []


async def test_a_close_code_that_means_trouble_is_said() -> None:
    async def close(server: ServerConnection) -> None:
        await server.send("last")
        await server.close(1011, "broken inside")

    async with talking_to(close) as near:
        last, why = await to_the_end(near)
    assert last == Line(b"last")
    assert why.raw == b""
    assert why.damage is not None
    assert why.damage.kind is DamageKind.CLOSED
    assert "1011" in why.damage.words
    assert "broken inside" in why.damage.words


async def test_a_server_that_refuses_the_handshake_is_named() -> None:
    def refuse(server: ServerConnection, request: Any) -> Any:
        return server.respond(403, "no entry")

    with pytest.raises(HandshakeFailed, match="403"):
        async with talking_to(echo, process_request=refuse):
            pytest.fail("it was refused")


async def test_a_server_that_speaks_no_websocket_is_named() -> None:
    async def chatter(stream: SocketStream) -> None:
        async with stream:
            await stream.send(b'{"method":"hello"}\n\n')

    with anyio.fail_after(BOUND):
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
            address = f"ws://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listener.serve, chatter)
                with pytest.raises(HandshakeFailed) as caught:
                    await connect(address)
                assert "\n" not in str(caught.value)
                tasks.cancel_scope.cancel()


async def test_messages_that_come_with_the_handshake_are_not_lost() -> None:
    async def greeting(server: ServerConnection) -> None:
        await server.send("at once")
        await server.wait_closed()

    async with talking_to(greeting) as near:
        assert await near.receive() == [Line(b"at once")]


async def test_a_message_far_over_the_limit_ends_the_connection_and_is_said() -> None:
    async def flood(server: ServerConnection) -> None:
        await server.send("x" * (4 * LIMIT + 1))
        await server.wait_closed()

    async with talking_to(flood) as near:
        (line,) = await to_the_end(near)
    assert line.damage is not None
    assert line.damage.kind is DamageKind.TOO_LONG
    assert len(line.raw) < LIMIT


async def test_text_that_is_no_utf8_ends_nothing() -> None:
    async with raw_link() as (link, far):
        await far.send_frame(Frame(Opcode.TEXT, b"\xff\xfe"))
        assert await link.near.receive() == [Line(b"\xff\xfe")]
        await far.send(b"{}\n")
        assert await link.near.receive() == [Line(b"{}")]


async def test_a_close_in_the_middle_of_a_message_leaves_its_beginning() -> None:
    async with raw_link() as (link, far):
        await far.send(b'{"half')
        await far.send_frame(Frame(Opcode.CLOSE, Close(1011, "oh").serialize()))
        half, why = await to_the_end(link.near)
    assert half == Line(
        b'{"half', Damage(DamageKind.CUT_OFF, "the stream ended before the line did")
    )
    assert why.damage is not None
    assert why.damage.kind is DamageKind.CLOSED
    assert "1011" in why.damage.words


async def test_a_breach_of_the_protocol_is_reported_and_ends_the_connection() -> None:
    async with raw_link() as (link, far):
        await far.stream.send(Frame(Opcode.TEXT, b"masked").serialize(mask=True))
        (line,) = await to_the_end(link.near)
    assert line.damage is not None
    assert line.damage.kind is DamageKind.BROKEN
    assert line.damage.words.startswith("the server broke the WebSocket protocol: ")


async def test_a_released_connection_is_closed_for_both_uses() -> None:
    async with raw_link() as (link, far):
        near: Any = link.near
        await near.release()
        await near.release()
        with pytest.raises(TargetGone):
            await near.receive()
        with pytest.raises(TargetGone):
            await near.send(b"x")
        assert await far.receive() == b""


@pytest.mark.parametrize(
    "address",
    [
        "ws://127.0.0.1:8080",
        "ws://127.0.0.1:8080/path?query=1",
        "ws://[::1]:8080",
        "ws://localhost:1",
        "unix:relative",
        "unix:/absolute",
        "unix:///absolute",
        "ws+unix:///absolute",
    ],
)
def test_addresses_of_this_machine_are_taken(address: str) -> None:
    check_address(address)


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("ws://10.0.0.1:80", "is not on this machine: '10.0.0.1'"),
        ("ws://example.org:80", "is not on this machine"),
        ("ws://0.0.0.0:80", "is not on this machine"),
        ("ws://127.0.0.1.example.org:80", "is not on this machine"),
        ("ws://user:word@127.0.0.1:80", "is no address"),
        ("wss://127.0.0.1:80", "is no address"),
        ("ws://127.0.0.1", "is no address"),
        ("ws://127.0.0.1:0", "is no address"),
        ("ws://127.0.0.1:99999", "is no address"),
        ("ws://[::1", "is no address"),
        ("127.0.0.1:80", "is no address"),
        ("stdio", "is no address"),
        ("", "is no address"),
        ("unix:", "names no path"),
        ("unix://", "names no path"),
        ("ws+unix:", "names no path"),
    ],
)
async def test_every_other_address_is_refused_in_one_line(address: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        await connect(address)
    assert problem in str(caught.value)
    assert str(caught.value).endswith("expected ws://127.0.0.1:PORT, unix:PATH or ws+unix:PATH")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["ws://127.0.0.1:1", "unix:no-such-socket", "ws+unix:no-such-socket"]
)
async def test_nobody_there_is_an_error_of_the_system(address: str) -> None:
    with anyio.fail_after(BOUND), pytest.raises(OSError):  # noqa: PT011 - which one differs
        await connect(address)
