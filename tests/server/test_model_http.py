"""HTTP to the model without a library: answers in any pieces, malformed ones, kept connections."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from reference_server.model.answer import TransportError
from reference_server.model.direct import DirectConnection, is_direct
from reference_server.model.http_reading import MAX_HEAD_BYTES, ChunkedBody, body_of, read_head

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
COUNTED = OK + b"Content-Length: 5\r\n\r\n"
WHOLE = {
    "chunks": CHUNKED + b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
    "chunks-with-trailer": CHUNKED + b"0D\r\nabc0123456789\r\n0\r\nX-Sum: 1\r\n\r\n",
    "line-ends-in-chunks": CHUNKED + b"4\r\n\r\n\r\n\r\n0\r\n\r\n",
    "length": OK + b"content-length: 13\r\n\r\nabc0123456789",
    "same-length-twice": OK + b"Content-Length: 3, 3\r\n\r\nabc",
    "nothing": b"HTTP/1.1 204 No Content\r\n\r\n",
    "bare-line-ends": b"HTTP/1.1 200 OK\nContent-Length: 3\n\nabc",
}
MALFORMED = {
    "no-http": b"SSH-2.0-OpenSSH\r\n\r\n",
    "header-without-name": OK + b": x\r\n\r\n",
    "header-without-colon": OK + b"oops\r\n\r\n",
    "unknown-coding": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    "two-lengths": OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "negative-length": OK + b"Content-Length: -3\r\n\r\nabc",
    "size-of-a-chunk": CHUNKED + b"0x3\r\nabc\r\n",
    "long-chunk": CHUNKED + b"2\r\nabc\r\n0\r\n\r\n",
    "endless-size": CHUNKED + b"1" * (1 << 15),
    "endless-head": OK + b"X: " + b"y" * MAX_HEAD_BYTES,
    "another-protocol": b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
}


def read(answer: bytes, size: int) -> tuple[bytes, bool]:
    """Read an answer that comes in pieces of this size; gives the body and whether it is whole."""
    head, at = None, 0
    data = b""
    while head is None:
        at += size
        found = read_head(answer[:at])
        if found is not None:
            head, data = found
    body = body_of(head)
    parts = [body.feed(data)]
    while at < len(answer):
        parts.append(body.feed(answer[at : at + size]))
        at += size
    assert not body.excess
    return b"".join(parts), body.is_whole


@pytest.mark.parametrize("answer", WHOLE.values(), ids=WHOLE)
def test_pieces_of_any_size_give_the_same_body(answer: bytes) -> None:
    bodies = {read(answer, size) for size in range(1, len(answer) + 1)}
    assert len(bodies) == 1
    [(_, is_whole)] = bodies
    assert is_whole


def test_headers_are_joined_as_the_rfc_says() -> None:
    lines = b"X-A: one\r\nx-a:two \r\nX-B: long\r\n  value\r\nConnection: Close\r\n\r\nrest"
    found = read_head(OK + lines)
    assert found is not None
    head, rest = found
    assert head.headers == {"x-a": "one, two", "x-b": "long value", "connection": "Close"}
    assert (head.keeps_open, rest) == (False, b"rest")


def test_bytes_after_the_last_chunk_are_no_part_of_the_body() -> None:
    body = ChunkedBody()
    assert body.feed(b"1\r\na\r\n0\r\n\r\nHTTP/1.1 200") == b"a"
    assert (body.is_whole, body.excess) == (True, b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("address", "direct"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://[::1]:80/", True),
        ("http://host", True),
        ("https://host/v1", False),
        ("http://user:word@host/v1", False),
        ("http://host:0/v1", False),
        ("http://host:65536/v1", False),
        ("http://host/v1?x=1", False),
        ("http://h\u00f6st/v1", False),
        ("http://host/v1\n", False),
    ],
)
def test_only_plain_addresses_are_called_directly(address: str, direct: bool) -> None:
    assert is_direct(address) is direct


@asynccontextmanager
async def serving(*answers: bytes, close: bool = False) -> AsyncGenerator[tuple[str, list[int]]]:
    """Answer one request after the other; gives the address and the number of each connection.

    `close`: after each answer the connection is closed.
    """
    left = list(answers)
    numbers: list[int] = []
    opened = 0

    async def handle(stream: SocketStream) -> None:
        nonlocal opened
        opened += 1
        number = opened
        async with stream:
            try:
                while left:
                    while not (await stream.receive()).endswith(b"body"):
                        pass
                    numbers.append(number)
                    await stream.send(left.pop(0))
                    if close:
                        return
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handle)
        port = listener.extra(SocketAttribute.local_port)
        yield f"http://127.0.0.1:{port}/v1", numbers
        tasks.cancel_scope.cancel()


async def call(connection: DirectConnection, address: str) -> bytes:
    with anyio.fail_after(5):
        answer = await connection.post(address, {"X": "y"}, b"body")
        try:
            return b"".join([chunk async for chunk in answer.chunks()])
        finally:
            await answer.aclose()


@pytest.mark.socket
@pytest.mark.parametrize(
    ("first", "used_again"),
    [
        (WHOLE["chunks"], True),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + COUNTED + b"12345", True),
        (COUNTED + b"12345more", False),
        (OK + b"Connection: close\r\nContent-Length: 1\r\n\r\na", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", False),
    ],
    ids=["chunks", "continue", "excess", "close", "http-1.0"],
)
async def test_a_connection_is_used_again_only_after_a_whole_answer(
    first: bytes, used_again: bool
) -> None:
    async with serving(first, WHOLE["length"]) as (address, numbers):
        connection = DirectConnection()
        await call(connection, address)
        assert await call(connection, address) == b"abc0123456789"
        await connection.aclose()
    assert numbers == ([1, 1] if used_again else [1, 2])


@pytest.mark.socket
async def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    async with serving(WHOLE["length"], WHOLE["chunks"], close=True) as (address, numbers):
        connection = DirectConnection()
        await call(connection, address)
        with anyio.fail_after(5):
            while not connection.is_stale:
                await anyio.lowlevel.checkpoint()
        assert await call(connection, address) == b"abc0123456789"
        await connection.aclose()
    assert numbers == [1, 2]


@pytest.mark.socket
@pytest.mark.parametrize("answer", MALFORMED.values(), ids=MALFORMED)
async def test_a_malformed_answer_is_an_error(answer: bytes) -> None:
    async with serving(answer, close=True) as (address, _):
        with pytest.raises(TransportError, match=r"^RemoteProtocolError: "):
            await call(DirectConnection(), address)


@pytest.mark.socket
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "Server disconnected without sending a response."),
        (OK, "Server disconnected without sending a response."),
        (CHUNKED + b"5\r\nab", "complete message body (incomplete chunked read)"),
        (COUNTED + b"ab", "complete message body (received 2 bytes, expected 5)"),
    ],
    ids=["at-once", "in-the-head", "in-a-chunk", "before-the-length"],
)
async def test_an_answer_that_is_cut_says_where(answer: bytes, words: str) -> None:
    async with serving(answer, close=True) as (address, _):
        with pytest.raises(TransportError) as caught:
            await call(DirectConnection(), address)
    assert str(caught.value).startswith("RemoteProtocolError: ")
    assert str(caught.value).endswith(words)


@pytest.mark.socket
async def test_a_body_without_a_length_ends_with_the_connection() -> None:
    async with serving(OK + b"\r\nall of it", close=True) as (address, _):
        assert await call(DirectConnection(), address) == b"all of it"


async def test_a_header_cannot_begin_another() -> None:
    with pytest.raises(TransportError, match="Illegal header value"):
        await DirectConnection().post("http://127.0.0.1:9/v1", {"X": "a\r\nB: c"}, b"")
