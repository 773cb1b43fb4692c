"""One suite over every transport: the contract of `harness.client.transport.base.Transport`."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import TypeVar

import anyio
import pytest

from harness.client.peer import Peer
from harness.client.transport.base import Transport
from harness.client.transport.jsonl import Line
from harness.errors import TargetGone
from harness.trace.frame import Damage, DamageKind
from harness.trace.recorder import Recorder

from .links import LIMIT, LINKS, Far, Link

pytestmark = [pytest.mark.socket, pytest.mark.slow]

BOUND = 20.0
T = TypeVar("T")


@pytest.fixture(params=LINKS)
async def link(request: pytest.FixtureRequest) -> AsyncGenerator[Link]:
    with anyio.fail_after(BOUND):
        async with LINKS[request.param]() as made:
            yield made


async def lines_of(near: Transport, count: int) -> list[Line]:
    found: list[Line] = []
    while len(found) < count:
        found += await near.receive()
    return found


async def to_the_end(near: Transport) -> list[Line]:
    found: list[Line] = []
    try:
        while True:
            found += await near.receive()
    except TargetGone:
        return found


async def expect_closed(near: Transport) -> None:
    """Send until the other side's close is seen; a pipe takes some bytes before that."""
    try:
        while True:
            await near.send(b"y" * 65536)
    except TargetGone:
        return


async def while_doing(
    work: Callable[[bytes], Coroutine[None, None, None]], data: bytes, wanted: Awaitable[T]
) -> T:
    """Await one thing while another goes on beside it."""
    found: list[T] = []

    async def collect() -> None:
        found.append(await wanted)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work, data)
        tasks.start_soon(collect)
    return found[0]


async def read_until(far: Far, enough: Callable[[bytes], bool]) -> bytes:
    data = b""
    while not enough(data):
        chunk = await far.receive()
        if not chunk:
            break
        data += chunk
    return data


async def test_a_line_is_given_whole_whatever_its_chunks(link: Link) -> None:
    for byte in b'{"a":1}\n':
        await link.far.send(bytes([byte]))
    await link.far.send(b'{"b":2}\n{"c"')
    await link.far.send(b":3}\r\n\n  \n{}\n")
    found = await lines_of(link.near, 4)
    assert [line.raw for line in found] == [b'{"a":1}', b'{"b":2}', b'{"c":3}', b"{}"]
    assert {line.damage for line in found} == {None}


async def test_the_beginning_of_a_line_is_kept_and_shown(link: Link) -> None:
    await link.far.send(b'{"whole":1}\n{"half"')
    assert (await lines_of(link.near, 1))[0].raw == b'{"whole":1}'
    await link.far.send(b":")
    # No line ends here: waits are given up, and nothing that came is lost by it.
    while link.near.partial != b'{"half":':
        with anyio.move_on_after(0.01):
            pytest.fail(f"no line has ended, and there is one: {await link.near.receive()}")
    assert link.near.partial_size == len(b'{"half":')
    await link.far.send(b"2}\n")
    assert (await lines_of(link.near, 1))[0].raw == b'{"half":2}'
    assert (link.near.partial, link.near.partial_size) == (b"", 0)


async def test_a_line_over_the_limit_is_cut_and_said_and_the_next_is_whole(link: Link) -> None:
    size = 3 * LIMIT
    text = b"x" * size + b"\nnext\n"
    long, after = await while_doing(link.far.send, text, lines_of(link.near, 2))
    words = f"a line of {size} bytes; the limit is {LIMIT}"
    assert long.damage == Damage(DamageKind.TOO_LONG, words)
    assert len(long.raw) < LIMIT
    assert after == Line(b"next")


async def test_bytes_that_are_no_utf8_arrive_as_they_are(link: Link) -> None:
    await link.far.send(b"\xff\xc3\x28\x00\x85\xe2\x80\xa8\n")
    assert await lines_of(link.near, 1) == [Line(b"\xff\xc3\x28\x00\x85\xe2\x80\xa8")]


async def test_after_the_far_side_closes_the_rest_arrives_and_then_the_end(link: Link) -> None:
    await link.far.send(b"one\ntwo\nhal")
    await link.far.close_output()
    found = await to_the_end(link.near)
    assert [line.raw for line in found] == [b"one", b"two", b"hal"]
    cut_off = Damage(DamageKind.CUT_OFF, "the stream ended before the line did")
    assert found[-1].damage == cut_off
    for _ in range(2):
        with pytest.raises(TargetGone):
            await link.near.receive()


async def test_close_of_the_far_side_wakes_who_waits(link: Link) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(link.far.close_output)
        with pytest.raises(TargetGone):
            await link.near.receive()


async def test_our_close_is_the_end_of_their_input_and_their_last_words_arrive(link: Link) -> None:
    await link.near.send(b"last")
    await link.near.aclose()
    await link.near.aclose()
    assert await read_until(link.far, lambda data: False) == b"last\n"
    await link.far.send(b"goodbye\n")
    assert (await lines_of(link.near, 1))[0].raw == b"goodbye"
    with pytest.raises(TargetGone):
        await link.near.send(b"more")


async def test_sending_to_a_closed_input_says_so(link: Link) -> None:
    await link.far.close_input()
    await expect_closed(link.near)
    with pytest.raises(TargetGone):
        await link.near.send(b"again")


async def test_writers_never_interleave(link: Link) -> None:
    writers, size, each = 8, 150_000, 3

    async def write(letter: bytes) -> None:
        for _ in range(each):
            await link.near.send(letter * size)

    async def write_all(letters: bytes) -> None:
        async with anyio.create_task_group() as tasks:
            for letter in letters:
                tasks.start_soon(write, bytes([letter]))

    reading = read_until(link.far, lambda data: data.count(b"\n") == writers * each)
    data = await while_doing(write_all, b"abcdefgh"[:writers], reading)
    lines = data.split(b"\n")[:-1]
    assert len(lines) == writers * each
    assert all(re.fullmatch(rb"(.)\1*", line) and len(line) == size for line in lines)


async def test_bytes_are_sent_as_they_are(link: Link) -> None:
    await link.near.send_bytes(b"half")
    await link.near.send_bytes(b" a line\xff\n\n")
    expected = b"half a line\xff\n\n"
    assert await read_until(link.far, lambda data: len(data) >= len(expected)) == expected


async def test_messages_byte_by_byte_arrive_whole_and_in_their_order(link: Link) -> None:
    peer = Peer(link.near, Recorder())
    peer.sends_slices = True

    async def send(_: bytes) -> None:
        async with anyio.create_task_group() as tasks:
            for name in ("é", "b"):
                tasks.start_soon(peer.notify, name)

    reading = read_until(link.far, lambda data: data.count(b"\n") == 2)
    data = await while_doing(send, b"", reading)
    assert data == '{"method":"é"}\n{"method":"b"}\n'.encode()


async def test_many_lines_at_once_keep_their_order(link: Link) -> None:
    count = 20_000
    text = b"".join(b"%d\n" % number for number in range(count))
    found = await while_doing(link.far.send, text, lines_of(link.near, count))
    assert [int(line.raw) for line in found] == list(range(count))
